"""What a server does not do unless it is asked for: FastMCP's session state and docstring parser, lists of tools."""

from __future__ import annotations

import inspect
import socket
import subprocess
import sys
from typing import Annotated

import anyio
import pytest
import uvicorn
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server.middleware import Middleware
from fastmcp.tools import FunctionTool
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import Field

from deepwork.server.project_server import ProjectServer

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
    assert not {"beartype", "griffe", "key_value", "pytest"} & {name.partition(".")[0] for name in modules}
    assert [name for name in modules if name.startswith("deepwork.testing")] == []


BUILD_MODELS = """
import sys
from pydantic import BaseModel
import deepwork.server
from deepwork.models.sessions import Session

class OfPlugin(BaseModel):
    name: str

protocol = [model for model in vars(sys.modules["mcp_types"]).values() if isinstance(model, type)]
models = [model for model in protocol if issubclass(model, BaseModel)]
print(OfPlugin.__pydantic_complete__ and Session.__pydantic_complete__)
print(len(models), sum(model.__pydantic_complete__ for model in models))
"""


def test_the_models_of_the_protocol_are_built_when_they_are_used_and_ours_as_ever():
    ended = subprocess.run([sys.executable, "-c", BUILD_MODELS], capture_output=True, text=True, check=True)
    others_are_built, models, built = ended.stdout.split()
    assert others_are_built == "True"
    assert int(models) > 100
    assert int(built) < int(models) / 4


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
    assert await two_words(remembering(ProjectServer)) == ["before: None", "before: one"]
    assert await two_words(remembering(ProjectServer)) == await two_words(remembering(FastMCP))


class Listings(Middleware):
    """Counts how often the tools of a server are listed."""

    def __init__(self):
        self.count = 0

    async def on_list_tools(self, context, call_next):
        self.count += 1
        return await call_next(context)


@pytest.fixture
async def placed():
    """Serve a tool with such an argument over HTTP; gives the URL and the listings."""
    listings = Listings()
    server = ProjectServer("placed", middleware=[listings])

    async def place(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
        return region

    server.add_tool(FunctionTool.from_function(place))
    web = uvicorn.Server(uvicorn.Config(server.http_app(), log_level="error", lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.serve, [listener])
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", listings
            web.should_exit = True


@pytest.mark.skipif(
    "get_tool_input_schema" not in inspect.signature(Server).parameters,
    reason="this release of mcp has the tools listed at each call",
)
async def test_a_call_over_http_does_not_have_the_tools_listed(placed):
    url, listings = placed
    async with Client(url) as client:
        await client.list_tools()  # the client learns the header from this
        before = listings.count
        for region in ("north", "south"):
            assert (await client.call_tool("place", {"region": region})).data == region
        assert listings.count == before


async def test_a_header_that_contradicts_an_argument_is_refused(placed):
    url, _ = placed
    async with Client(StreamableHttpTransport(url, headers={"Mcp-Param-Region": "south"})) as client:
        with pytest.raises(MCPError, match="Mcp-Param-Region"):
            await client.call_tool("place", {"region": "north"})
