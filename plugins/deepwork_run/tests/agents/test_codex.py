"""Codex against the contract of agents, with what the real program has printed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from deepwork.api import open_context
from deepwork.ports.agent import Ended, Failed
from deepwork.testing import AgentContract, CliScript
from deepwork_run.agents.codex import CodexAgent
from deepwork_run.settings import RunSettings

SAMPLES = Path(__file__).parents[1] / "samples" / "codex-0.169.0"
NO_SERVER = (
    "Error: thread/start: thread/start failed: error creating thread: Fatal error: Failed to initialize session: \
required MCP servers failed to initialize: deepwork: "
)
LIMIT_WORDS = "You've hit your usage limit. API Error: 429 rate_limit. Connection refused. Prompt is too long. /login"


def recorded(name):
    return (SAMPLES / f"{name}.jsonl").read_text().splitlines()


class TestCodexAgent(AgentContract):
    @pytest.fixture
    def make_agent(self, project):
        return lambda program: CodexAgent(open_context("run", project.root), RunSettings(codex=program))

    def lines_of(self, situation):
        if situation == "usage-limit-until":
            hour = (datetime.now().astimezone() + timedelta(hours=2)).strftime("%-I:%M %p")
            return [line.replace("7:24 PM", hour) for line in recorded(situation)]
        if situation == "talk":
            return [line.replace("The end", LIMIT_WORDS) for line in recorded("done")]
        if situation == "unknown-error":
            lines = recorded("overload")
            return [line.replace("Selected model is at capacity", "It is a teapot") for line in lines]
        return recorded(situation)

    def spending(self):
        return {"to the end": (recorded("done"), (200, 14, None))}

    @pytest.mark.parametrize(
        "reason",
        [
            "timed out handshaking with MCP server after 60s: deadline has elapsed",
            "handshaking with MCP server failed: connection closed: initialize response",
        ],
    )
    async def test_a_server_that_does_not_start_is_no_lost_network(self, agent, cli, task, reason):
        cli.plays(CliScript(exit_code=1, stderr=NO_SERVER + reason))
        events = [event async for event in agent.start(task)]
        assert [type(event) for event in events] == [Failed, Ended]
        assert reason in events[0].text
