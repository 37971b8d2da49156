"""A server whose unlisted tool `hook` notes which events call it, in the file of its first argument."""

import json
import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware
from fastmcp.tools import ToolResult
from mcp_types import TextContent


def note(arguments):
    with Path(sys.argv[1]).open("a") as file:
        file.write(json.dumps(arguments) + "\n")


class Recording(Middleware):
    async def on_call_tool(self, context, call_next):
        if context.message.name != "hook":
            return await call_next(context)
        note(context.message.arguments)
        return ToolResult(content=[TextContent(type="text", text="{}")])


server = FastMCP("deepwork", middleware=[Recording()])


@server.tool
def start_workflow() -> str:
    return "started"


server.run(show_banner=False)
