"""What the tests share: samples of real programs, and runs with agents that do what a test says."""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from deepwork.api import ToolCall, open_project
from deepwork.ports.agent import AgentSpec
from deepwork.testing import step
from deepwork_run.display import Display
from deepwork_run.options import Options
from deepwork_run.record import Record
from deepwork_run.runner import Runner

sys.path.insert(0, str(Path(__file__).parent))
from acting import ActingAgent

from deepwork.testing.wire import PATIENCE

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path_factory):
    """Hide the settings of the user who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "ANTHROPIC_", "CLAUDE", "OPENAI", "CODEX")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def sample():
    """Return the lines that a program has printed in a situation."""
    return lambda program, name: (SAMPLES / program / f"{name}.jsonl").read_text().splitlines()


class Runs:
    """Runs of a session of four steps, in this process."""

    def __init__(self, project):
        self._project = project
        project.write_job(steps=[step(name) for name in "abcd"])

    @asynccontextmanager
    async def opened(self, agents, session_id=None, *, claims=(), **options):
        """Make a runner: `agents` are acts by the name of the agent, and `claims` is what keeps their claims."""
        async with open_project("run", self._project.root) as project:
            project = replace(project, claims=claims)
            if session_id is None:
                started = await project.engine.start(ToolCall(), goal="goal", job_name="demo", workflow_name="main")
                session_id = started.begin_step.session_id
            acting_agents = {name: ActingAgent(project, acts) for name, acts in agents.items()}
            specs = {name: (AgentSpec(name=name, create=lambda: None), agent) for name, agent in acting_agents.items()}
            record = Record(project.context.workspace, session_id)
            chosen = Options(agents=tuple(agents), **options)
            runner = Runner(project, record, specs, chosen, Display())
            yield Opened(runner, session_id, acting_agents, record, project)

    async def run(self, agents, session_id=None, **options):
        """Run to the end."""
        async with self.opened(agents, session_id, **options) as opened:
            with anyio.fail_after(PATIENCE):
                opened.code = await opened.runner.run()
            opened.session = await opened.project.session(opened.session_id)
            return opened


@dataclass
class Opened:
    """A run that was made, and what came of it."""

    runner: Runner
    session_id: str
    agents: dict
    record: Record
    project: object
    code: int | None = None
    session: object = None

    @property
    def starts(self):
        """Which agents were started, in order."""
        return [worker.agent for worker in self.record.read().workers]

    def history(self, kind):
        return [entry.stored for entry in self.session.history if entry.kind == kind]


@pytest.fixture
def runs(project):
    return Runs(project)


@pytest.fixture
def stored(project):
    """Return the one session of the project, as it is stored."""
    return lambda: json.loads(next(project.state.glob("session_*.json")).read_text())
