"""Agents that talk to real servers on a shared database, on both engines."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

import deepwork_sql
from deepwork.api import Answerer, open_context
from deepwork.ports.inbox import Answer
from deepwork.testing import Agent, DeepworkProject
from deepwork_sql.testing import database_url, postgres_server, project_on_database  # noqa: F401 - fixtures


class PlanAgent(Agent):
    """A client that knows the tools of plans."""

    async def refusal(self, tool, **arguments):
        """Call a tool that has to refuse with one of our errors, and return it."""
        return json.loads(await self.refused(tool, **arguments))

    async def workflow(self, *tasks, name="plan", **more):
        """Create a workflow with a plan, and return its id and the ids of the tasks by name."""
        workflow_id = (await self.call("workflow_create", **SOURCE, name=name, **more))["id"]
        plan = {"summary": "do it", "approach": "step by step", "tasks": list(tasks)}
        await self.call("workflow_set_plan", id=workflow_id, plan=plan)
        workflow = await self.call("workflow_get", id=workflow_id, include_tasks=True)
        return workflow_id, {listed["name"]: listed["id"] for listed in workflow["tasks"]}

    async def worker(self, name="worker", **more):
        """Register an agent and return its id."""
        return (await self.call("agent_register", name=name, runtime="custom", **more))["id"]

    async def coordinator(self, name="coordinator"):
        return await self.worker(name, role="coordinator")

    async def status(self, task_id):
        return (await self.call("task_get", id=task_id))["status"]

    async def move(self, task_id, *statuses, **more):
        """Take a task through statuses."""
        for status in statuses:
            needed = {"completed": {"outcome": "done"}, "failed": {"error": "broke"}}.get(status, {})
            await self.call("task_update_status", id=task_id, status=status, **needed, **more)

    async def finish(self, task_id, **more):
        await self.move(task_id, "planning", "in_progress", "completed", **more)


SOURCE = {"source_type": "prompt", "source_content": "Build it."}


def task(name, *depends_on, sequence=1, **more):
    """Make a task of a plan."""
    return {"name": name, "description": f"Do {name}", "sequence": sequence, "depends_on": list(depends_on), **more}


class Team:
    """A project on a database, its servers, and what tests do behind their backs."""

    def __init__(self, project, stack):
        self.project = project
        self._stack = stack

    async def agent(self, **options):
        """Connect to a new server, as another session of an agent does."""
        agent = await self._stack.enter_async_context(self.project.agent(**{"tools": ["orchestration"], **options}))
        return PlanAgent(agent.client)

    @asynccontextmanager
    async def database(self):
        async with open_context("test", self.project.root) as context:
            yield await deepwork_sql.database(context)

    async def expire(self, *task_ids):
        """Let the leases on tasks run out, without waiting for it."""
        import sqlalchemy as sa

        from deepwork_orchestration.claims import item
        from deepwork_sql.tables import leases

        items = [item(task_id) for task_id in task_ids]
        change = sa.update(leases).where(leases.c.item.in_(items)).values(expires_at=1)
        async with self.database() as database:
            await database.write(lambda transaction: transaction.execute(change) and None)

    async def events(self, name=None):
        """Return the events of the feed, as pairs of name and data."""
        async with self.database() as database:
            events = await database.feed(None, source="orchestration")
        return [(event.event, event.data) for event in events if name in (None, event.event)]

    def git(self, *arguments, cwd=None):
        command = ["git", "-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", *arguments]
        completed = subprocess.run(command, cwd=cwd or self.project.root, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    def repository(self):
        """Make the project a repository with one commit."""
        self.git("init", "-q", "-b", "main")
        self.project.write("README.md")
        self.git("add", "README.md")
        self.git("commit", "-q", "-m", "first")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path_factory):
    """Hide the configuration of the user who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_", "GIT_", "PG")) and name != "DEEPWORK_TEST_POSTGRES_URL":
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))


@pytest.fixture
async def team(project_on_database):
    async with AsyncExitStack() as stack:
        yield Team(project_on_database, stack)


@pytest.fixture
async def agent(team):
    """One agent on one server."""
    return await team.agent()


@pytest.fixture(scope="session")
def make_task():
    return task


@pytest.fixture(scope="session")
def team_at():
    """Make a team in a folder, for tests that make many."""
    return lambda folder, stack: Team(DeepworkProject(folder), stack)


@pytest.fixture
def inbox(team):
    """Read and answer the inbox in a command, as `deepwork inbox` does."""
    person = Answerer(user="ada", terminal="/dev/pts/1")

    class Inbox:
        async def contents(self):
            async with open_context("test", team.project.root) as context:
                return await context.inbox().items(person)

        async def items(self):
            contents = await self.contents()
            assert contents.failures == ()
            return {item.id: item for item in contents.items}

        async def answer(self, item_id, action, text=None, by=person, **more):
            async with open_context("test", team.project.root) as context:
                return await context.inbox().answer(item_id, Answer(action, text, **more), by)

    return Inbox()


@pytest.fixture
async def plan(agent, make_task):
    """The ids of a workflow with two free tasks."""
    _, tasks = await agent.workflow(make_task("a"), make_task("b"))
    return tasks
