"""The MCP Inspector's command line: a connection of its own for each call."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

import anyio
import pytest

from deepwork.testing import Refused

pytestmark = [pytest.mark.anyio, pytest.mark.external, pytest.mark.timeout(600)]

TOOL_IS_ERROR = 5


class InspectorAgent:
    """An agent that starts the Inspector for each of its calls, and presses Ctrl-C."""

    def __init__(self, era, target, run):
        server = [target] if isinstance(target, str) else ["--", *target]
        self._ends = ["--protocol-era", era, *server]
        self._run = run

    async def tools(self):
        listed = await self._inspect("--method", "tools/list", "--strict")
        return [tool["name"] for tool in listed["tools"]]

    async def call(self, tool, **arguments):
        options = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
        result = await self._inspect(*options, codes=(0, TOOL_IS_ERROR))
        if result.get("isError"):
            raise Refused(result["content"][0]["text"])
        return result["structuredContent"]

    async def _inspect(self, *arguments, codes=(0,)):
        options = ["--cli", "--quiet", "--format", "json"]
        program = await self._run("mcp-inspector", *options, *arguments, *self._ends)
        try:
            assert await program.end() in codes, program.stderr
        except anyio.get_cancelled_exc_class():
            await program.ctrl_c()
            raise
        return json.loads(program.stdout)["result"]


# Over HTTP in the handshake era a client that has gone has not cancelled anything, and Ctrl-C tells no server.
@pytest.mark.parametrize(("era", "transport"), [("legacy", "stdio"), ("modern", "http")])
async def test_it_makes_the_journey(travel, on_path, run, transport, era):
    @asynccontextmanager
    async def connect(target):
        yield InspectorAgent(era, target, run)

    await travel(transport, connect)
