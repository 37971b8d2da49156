"""Let many agents on many servers do one large plan: `python plugins/deepwork_orchestration/tools/drain.py --help`.

Every server is a process. At the end the feed of events is counted: each task was claimed and completed exactly once,
and nothing was refused but claims of tasks that another agent had just taken.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import click
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql.cluster import running_cluster

# A task depends on some of those just before it, so that the plan is long and wide.
WINDOW = 60
# An agent that gets no task asks again later, each time after a longer pause.
PAUSE, LONGEST_PAUSE = 0.2, 5.0


class Drain:
    """One plan, and what its agents meet."""

    def __init__(self, root: Path, *, tasks: int, seed: int) -> None:
        self.root = root
        self.task_count = tasks
        self.chance = random.Random(seed)
        self.workflow_id = ""
        self.done = 0
        self.ended = anyio.Event()
        self.refused = 0
        self.errors: list[str] = []

    async def run(self, *, servers: int, agents: int) -> float:
        """Make the plan, let the agents do it, and give the seconds."""
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(self._server()) for _ in range(servers)]
            await self._plan(clients[0])
            started = time.perf_counter()
            async with anyio.create_task_group() as group:
                for client in clients:
                    for number in range(agents):
                        group.start_soon(self._agent, client, f"agent {number}")
            return time.perf_counter() - started

    async def check(self) -> list[str]:
        """Say what is wrong with what the feed says, if anything."""
        claimed: Counter[str] = Counter()
        completed: Counter[str] = Counter()
        async with open_context("orchestration", self.root) as context:
            database = await deepwork_sql.database(context)
            cursor: str | None = None
            while events := await database.feed(cursor, source="orchestration"):
                cursor = events[-1].id
                for event in events:
                    claimed[event.data["id"]] += event.event == "task:claimed"
                    completed[event.data["id"]] += event.event == "task:updated" and event.data["status"] == "completed"
        problems = [*self.errors]
        for what, counts in (("claimed", claimed), ("completed", completed)):
            once = sum(count == 1 for count in counts.values())
            if once != self.task_count or max(counts.values()) != 1:
                problems.append(f"{once} of {self.task_count} tasks were {what} exactly once")
        return problems

    def _server(self) -> Client[Any]:
        arguments = ["-m", "deepwork", "serve", "--path", str(self.root), "--tools", "orchestration"]
        log = self.root / "server.log"
        return Client(StdioTransport(sys.executable, arguments, env=dict(os.environ), keep_alive=False, log_file=log))

    async def _plan(self, client: Client[Any]) -> None:
        tasks = []
        for number in range(self.task_count):
            before = range(max(0, number - WINDOW), number)
            needed = self.chance.sample(before, min(len(before), self.chance.randint(0, 3)))
            names = [f"t{other}" for other in needed]
            tasks.append({"name": f"t{number}", "description": "Do it.", "sequence": 1 + number, "depends_on": names})
        source = {"name": "drain", "source_type": "prompt", "source_content": "Drain it."}
        created = await client.call_tool("workflow_create", source)
        self.workflow_id = created.structured_content["id"]
        plan = {"summary": "s", "approach": "a", "tasks": tasks}
        await client.call_tool("workflow_set_plan", {"id": self.workflow_id, "plan": plan})

    async def _agent(self, client: Client[Any], name: str) -> None:
        me = (await self._call(client, "agent_register", name=name, runtime="custom"))["id"]
        pause = PAUSE
        while self.done < self.task_count and not self.errors:
            if await self._work(client, me):
                pause = PAUSE
                continue
            with anyio.move_on_after(self.chance.uniform(pause / 2, pause)):
                await self.ended.wait()
            pause = min(2 * pause, LONGEST_PAUSE)
        self.ended.set()

    async def _work(self, client: Client[Any], me: str) -> bool:
        """Do one of the available tasks, and say whether there was one that no other agent took first."""
        offered = (await self._call(client, "task_get_available", agent_id=me, limit=20)).get("tasks")
        if not offered:
            return False
        task_id = self.chance.choice(offered)["id"]
        claim = await self._call(client, "task_claim", task_id=task_id, agent_id=me)
        if not claim.get("success"):
            self.refused += 1
            return False
        for status in ("planning", "completed"):
            await self._call(client, "task_update_status", id=task_id, status=status, outcome="done", agent_id=me)
        self.done += 1
        return True

    async def _call(self, client: Client[Any], tool: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments, raise_on_error=False)
        if result.is_error:
            text = getattr(result.content[0], "text", "")
            # Another agent may have finished the task between the list and the claim.
            if tool != "task_claim" or json.loads(text)["code"] != "INVALID_STATE":
                self.errors.append(f"{tool}: {text}")
            return {}
        return dict(result.structured_content or {})


@contextmanager
def _database(engine: str) -> Iterator[None]:
    """Let the servers use a private cluster of PostgreSQL, or the file of their project."""
    if engine == "sqlite":
        yield
        return
    with running_cluster() as cluster, cluster.new_database() as url:
        os.environ["DEEPWORK_DATABASE_URL"] = url
        yield


@click.command()
@click.option("--servers", default=8, show_default=True, help="Processes.")
@click.option("--agents", default=64, show_default=True, help="Agents of each server.")
@click.option("--tasks", default=2000, show_default=True, help="Tasks of the plan.")
@click.option("--seed", default=1, show_default=True, help="The same plan again.")
@click.option("--engine", default="sqlite", show_default=True, type=click.Choice(["sqlite", "postgresql"]))
def main(servers: int, agents: int, tasks: int, seed: int, engine: str) -> None:
    """Drain a plan, and say how long it took and what was wrong."""

    async def run(folder: Path) -> tuple[Drain, float, list[str]]:
        drain = Drain(folder, tasks=tasks, seed=seed)
        seconds = await drain.run(servers=servers, agents=agents)
        return drain, seconds, await drain.check()

    with tempfile.TemporaryDirectory() as folder, _database(engine):
        drain, seconds, problems = anyio.run(run, Path(folder))
    print(f"{engine}: {servers} servers x {agents} agents, {tasks} tasks: {drain.done} done in {seconds:.1f} s,")
    print(f"{tasks / seconds:.1f} tasks a second, {drain.refused} polite refusals, {len(problems)} problems")
    for problem in problems[:10]:
        print(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
