"""Real repositories, real databases of both engines, and agents that talk to real servers."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from deepwork.testing import Agent, DeepworkProject
from deepwork_sql.testing import database_url, postgres_server  # noqa: F401 - fixtures

END = b"(this is all)"


class Tracker(Agent):
    """An agent that uses the tools of tracking."""

    async def error(self, tool, **arguments):
        """Call a tool that has to refuse, and give the error as an object."""
        return json.loads(await self.refused(tool, **arguments))

    async def workflow(self, **more):
        return (await self.call("start_workflow", **{"name": "w", "objective": "o", **more}))["workflow_id"]

    async def phase(self, workflow_id, number=1, **more):
        arguments = {"name": "p", **more}
        return (await self.call("start_phase", workflow_id=workflow_id, number=number, **arguments))["phase_id"]

    async def start(self, workflow_id, phase_id, **more):
        who = {"caller_type": "subagent", "agent_name": "ann", "name": "t", "goal": "g", **more}
        return await self.call("start_task", workflow_id=workflow_id, phase_id=phase_id, **who)

    async def task(self, workflow_id, phase_id, **more):
        return (await self.start(workflow_id, phase_id, **more))["task_id"]

    async def running(self, **more):
        """Start a workflow, its first phase and a task in it, and give their ids."""
        workflow_id = await self.workflow()
        phase_id = await self.phase(workflow_id)
        return workflow_id, phase_id, await self.task(workflow_id, phase_id, **more)

    async def complete(self, task_id, status="success", **outcome):
        outcome = {"summary": "done", **outcome}
        return await self.call("complete_task", task_id=task_id, status=status, outcome=outcome)

    async def end(self, workflow_id, status="completed", **more):
        return await self.call("complete_workflow", workflow_id=workflow_id, status=status, summary="all", **more)

    async def context(self, workflow_id, *include, **filter_):
        arguments = {"filter": filter_} if filter_ else {}
        return await self.call("get_context", workflow_id=workflow_id, include=list(include), **arguments)


class Repo(DeepworkProject):
    """A project in a git repository."""

    def git(self, *arguments, cwd=None):
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        completed = subprocess.run(command, cwd=cwd or self.root, capture_output=True, check=False)
        assert completed.returncode == 0, completed.stderr.decode()
        return completed.stdout.decode().strip()

    def init(self):
        self.root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        return self

    def commit(self, message="work"):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    @asynccontextmanager
    async def tracker(self, *, tools=("tracking",), **options):
        async with self.agent(tools=tools, **options) as agent:
            yield Tracker(agent.client)

    @asynccontextmanager
    async def other_tracker(self, **options):
        """Start a server process of its own."""
        async with self.stdio_agent("--tools", "tracking", **options) as agent:
            yield Tracker(agent.client)

    def run(self, *arguments, env=None):
        """Run the command `deepwork`."""
        command = [sys.executable, "-m", "deepwork", *arguments]
        environment = {**os.environ, "COLUMNS": "100", **(env or {})}
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=environment, timeout=240)

    def run_at_terminal(self, *arguments):
        """Run it as a person does: stdin and stderr are a terminal."""
        primary, secondary = pty.openpty()
        command = [sys.executable, "-m", "deepwork", *arguments]
        try:
            streams = {"stdin": secondary, "stdout": subprocess.PIPE, "stderr": secondary}
            result = subprocess.run(command, cwd=self.root, text=True, env={**os.environ}, timeout=240, **streams)
            os.write(secondary, END)
            output = b""
            while END not in output:
                output += os.read(primary, 65536)
            result.stderr = " ".join(output.partition(END)[0].decode().split())
            return result
        finally:
            os.close(primary)
            os.close(secondary)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path_factory):
    """Hide the configuration of the user who runs the tests, for DeepWork and for git."""
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_", "GIT_", "PG")) and name != "DEEPWORK_TEST_POSTGRES_URL":
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n\temail = somebody@example.org\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))


@pytest.fixture
def folder(tmp_path):
    """A project in a folder without git."""
    (tmp_path / "project").mkdir()
    return Repo(tmp_path / "project")


@pytest.fixture
def repo(folder):
    """A project in a repository with one commit."""
    folder.init().write("README.md")
    folder.commit()
    return folder


@pytest.fixture
def repo_at():
    """Return the class, for tests that make repositories in other folders."""
    return Repo


@pytest.fixture
def shared(repo, database_url, monkeypatch):
    """A project in a repository whose servers and commands use a database of each engine."""
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", database_url)
    return repo
