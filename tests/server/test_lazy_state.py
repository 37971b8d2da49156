"""A start without what nobody has asked for: FastMCP's session state, its docstring parser."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fastmcp import Client, Context, FastMCP

from deepwork.server.lazy_state import LazyStateServer

pytestmark = pytest.mark.anyio

LIST_TOOLS = """
import anyio, sys
from deepwork.server import create_server

async def list_tools():
    server = create_server(sys.argv[1])
    return [tool.name for tool in await server.list_tools()]

assert "start_workflow" in anyio.run(list_tools)
print(*sys.modules)
"""


def test_a_server_that_lists_its_tools_has_not_imported_what_only_few_need(project):
    command = [sys.executable, "-c", LIST_TOOLS, str(project.root)]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"beartype", "griffe", "key_value"} & {name.partition(".")[0] for name in modules}


@pytest.fixture
def remembering():
    """Make a server with a tool that keeps something between calls."""

    def remembering(kind):
        server = kind("remembering")

        @server.tool
        async def remember(word: str, context: Context) -> str:
            before = await context.get_state("word")
            await context.set_state("word", word)
            return f"before: {before}"

        return server

    return remembering


async def two_words(server):
    async with Client(server, mode="legacy") as client:
        return [(await client.call_tool("remember", {"word": word})).data for word in ("one", "two")]


async def test_a_tool_that_keeps_something_between_calls_finds_it_as_with_fastmcp_itself(remembering):
    assert await two_words(remembering(LazyStateServer)) == ["before: None", "before: one"]
    assert await two_words(remembering(LazyStateServer)) == await two_words(remembering(FastMCP))
