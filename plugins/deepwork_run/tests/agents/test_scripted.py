"""The agent without a model against the contract of agents."""

from __future__ import annotations

import pytest

from deepwork.api import open_context
from deepwork.testing import AgentContract
from deepwork_run.agents.scripted import ScriptedAgent
from deepwork_run.settings import RunSettings

LINES = ('{"called": "a"}', '{"called": "a", "done": true}', '{"said": "a: workflow_complete"}')


class TestScriptedAgent(AgentContract):
    @pytest.fixture
    def make_agent(self, project):
        return lambda program: ScriptedAgent(open_context("run", project.root), RunSettings(), program)

    def lines_of(self, situation):
        return {"done": LINES, "unknown-error": (), "talk": ('{"said": "usage limit reached"}',)}.get(situation)
