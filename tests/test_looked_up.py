"""What is looked up once is what a server would look up itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fastmcp import Client

from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec

PROGRAM = """
import sys
import anyio
from fastmcp import Client
from deepwork.server import create_server
from looked_up import look_up, looked_up_once

async def tools():
    async with Client(create_server(sys.argv[1])) as client:
        return [tool.model_dump_json() for tool in await client.list_tools()]

itself = anyio.run(tools)
with looked_up_once():
    look_up()
    assert anyio.run(tools) == itself
print(len(itself))
"""


def test_a_server_has_the_tools_that_it_would_have_made_itself(project, monkeypatch):
    monkeypatch.delenv("DEEPWORK_NO_PLUGINS")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    command = [sys.executable, "-c", PROGRAM, str(project.root)]
    assert int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) >= 4


def offering(default):
    """Make a plugin whose tool has this default."""

    class Plugin:
        @hookimpl
        def deepwork_tool_sets(self):
            def greet(word: str = default) -> dict:
                """Greet."""
                return {"word": word}

            yield ToolSet("greeting", [ToolSpec("greet", greet, title="Greet")])

    return Plugin()


@pytest.mark.anyio
async def test_functions_of_one_text_keep_their_own_defaults(project):
    for default in ("hello", "goodbye"):
        async with Client(project.server(extra_plugins={"greeting": offering(default)}, tools=["greeting"])) as client:
            [tool] = await client.list_tools()
            assert tool.input_schema["properties"]["word"]["default"] == default
            assert (await client.call_tool("greet")).structured_content == {"word": default}
