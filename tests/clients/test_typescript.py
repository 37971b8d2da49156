"""The clients of the TypeScript SDK, over stdio and HTTP."""

from __future__ import annotations

import json
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from deepwork.testing import Refused

pytestmark = [pytest.mark.anyio, pytest.mark.external, pytest.mark.timeout(600)]

CLIENT = Path(__file__).parent / "data" / "client.mjs"


class NodeAgent:
    """An agent that speaks through `client.mjs`."""

    def __init__(self, process):
        self._process = process
        self._asked = 0
        self._answered = {}
        self._news = anyio.Event()

    async def tools(self):
        return await self._ask("tools")

    async def call(self, tool, **arguments):
        result = await self._ask("call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise Refused(result["content"][0]["text"])
        return result["structuredContent"]

    async def _ask(self, verb, params=None):
        self._asked += 1
        number = self._asked
        await self._write(id=number, ask=verb, params=params)
        try:
            return await self.answer(number)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(5, shield=True):
                await self._write(cancel=number)
                with pytest.raises(ClientError):
                    await self.answer(number)
            raise

    async def answer(self, number):
        """Wait for an answer of the client."""
        while number not in self._answered:
            await self._news.wait()
        answer = self._answered.pop(number)
        if "error" in answer:
            raise ClientError(answer["error"])
        return answer["result"]

    async def listen(self):
        """Read what the client answers."""
        pending = b""
        async for chunk in self._process.stdout:
            *lines, pending = (pending + chunk).split(b"\n")
            for message in map(json.loads, lines):
                self._answered[message["id"]] = message
            self._news.set()
            self._news = anyio.Event()

    async def _write(self, **message):
        await self._process.stdin.send(json.dumps(message).encode() + b"\n")


class ClientError(Exception):
    """What the client has thrown."""


@pytest.fixture
def script(on_path, node_clients, tmp_path):
    """The client's script, beside the modules that it imports."""
    (tmp_path / "node_modules").symlink_to(node_clients.parent)
    return shutil.copy(CLIENT, tmp_path)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize(
    ("version", "mode", "protocol"),
    [("v1", "legacy", None), ("v2", "legacy", "2025-11-25"), ("v2", "auto", "2026-07-28")],
)
async def test_it_makes_the_journey(travel, script, transport, version, mode, protocol):
    @asynccontextmanager
    async def connect(target):
        command = ["node", script, version, mode, *([target] if transport == "http" else target)]
        async with await anyio.open_process(command, stderr=None) as process, anyio.create_task_group() as tasks:
            agent = NodeAgent(process)
            tasks.start_soon(agent.listen)
            assert await agent.answer(0) == protocol
            yield agent
            await process.stdin.aclose()
            assert await process.wait() == 0

    await travel(transport, connect)
