"""Many agents on many servers that do one large plan.

Every server is a process. At the end the feed of events is counted: each task was claimed and completed exactly once,
and nothing was refused but claims of tasks that another agent had just taken.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

import deepwork_sql
from deepwork.api import open_context

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
        self.errors: list[str] = []

    async def run(self, *, servers: int, agents: int) -> None:
        """Make the plan, and let the agents do it."""
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(self._server()) for _ in range(servers)]
            await self._plan(clients[0])
            async with anyio.create_task_group() as group:
                for client in clients:
                    for number in range(agents):
                        group.start_soon(self._agent, client, f"agent {number}")

    async def check(self) -> list[str]:
        """Return what is wrong with what the feed says, if anything."""
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
        for outcome, counts in (("claimed", claimed), ("completed", completed)):
            once = sum(count == 1 for count in counts.values())
            if once != self.task_count or max(counts.values()) != 1:
                problems.append(f"{once} of {self.task_count} tasks were {outcome} exactly once")
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
            names = [f"t{number}" for number in needed]
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
        """Do an available task; return False if other agents took all of them first."""
        offered = (await self._call(client, "task_get_available", agent_id=me, limit=20)).get("tasks")
        if not offered:
            return False
        task_id = self.chance.choice(offered)["id"]
        claim = await self._call(client, "task_claim", task_id=task_id, agent_id=me)
        if not claim.get("success"):
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
