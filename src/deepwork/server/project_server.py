"""A FastMCP server that is spared work which FastMCP and the MCP library do at the start, and at each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import Tool

from deepwork.foreign import choose_state_store, declare, look_up_schemas

_UI = "io.modelcontextprotocol/ui"


class ProjectServer(FastMCP[Any]):
    """The server of a project.

    FastMCP's session state is made when something is stored in it for the first time. FastMCP reads it each time it
    lists its tools, and importing the library behind it takes a fifth of the whole start.

    The MCP library is told the schemas of the tools. It looks at that of the called tool at each call over HTTP, and
    would otherwise have all tools listed for it, which takes longer than most calls.

    What is not served is not declared: FastMCP names `logging` and the extension `ui` for every server.

    All this is done through names that FastMCP does not promise: without them, this class changes nothing.
    """

    _has_state = False

    def __init__(self, *args: Any, **options: Any) -> None:
        self._schemas: dict[str, dict[str, Any]] = {}
        super().__init__(*args, **options)
        look_up_schemas(self, self._schemas.get)
        declare(self, _served)

    def add_tool(self, tool: Any) -> Tool:
        """Add a tool."""
        added = super().add_tool(tool)
        self._schemas[added.name] = added.parameters
        return added

    def state_store(self, own: Callable[[], Any]) -> Any:
        """Return the store of session state; `own` opens FastMCP's."""
        return own() if self._has_state else _EmptyState(self, own)

    def open_state(self) -> None:
        """Use FastMCP's own store, from now on."""
        self._has_state = True


def _served(capabilities: Any) -> Any:
    """Return the capabilities that a server really serves."""
    extensions = {name: value for name, value in (capabilities.extensions or {}).items() if name != _UI}
    return capabilities.model_copy(update={"logging": None, "extensions": extensions or None})


choose_state_store(ProjectServer, ProjectServer.state_store)


class _EmptyState:
    """A store without content. Everything but reading a value is handed to FastMCP's own store."""

    def __init__(self, server: ProjectServer, own: Callable[[], Any]) -> None:
        self._server = server
        self._own = own

    async def get(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        self._server.open_state()
        return getattr(self._own(), name)
