"""A FastMCP server that is spared work which FastMCP and the MCP library do at the start, and at each call."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import Tool


class ProjectServer(FastMCP[Any]):
    """The server of a project.

    FastMCP's session state is made when something is stored in it for the first time. FastMCP reads it each time it
    lists its tools, and importing the library behind it takes a fifth of the whole start.

    The MCP library is told the schemas of the tools. It looks at that of the called tool at each call over HTTP, and
    would otherwise have all tools listed for it, which takes longer than most calls.

    `_state_store` and `_mcp_server` are private names of FastMCP: if FastMCP stops using them, this class changes
    nothing.
    """

    _has_state = False

    def __init__(self, *args: Any, **options: Any) -> None:
        self._schemas: dict[str, dict[str, Any]] = {}
        self._empty_state = _EmptyState(self)
        super().__init__(*args, **options)
        protocol: Any = getattr(self, "_mcp_server", None)
        if hasattr(protocol, "get_tool_input_schema"):
            protocol.get_tool_input_schema = self._schemas.get

    def add_tool(self, tool: Any) -> Tool:
        """Add a tool."""
        added = super().add_tool(tool)
        self._schemas[added.name] = added.parameters
        return added

    @property
    def _state_store(self) -> Any:
        return super()._state_store if self._has_state else self._empty_state

    def open_state(self) -> Any:
        """Return FastMCP's own store, from now on."""
        self._has_state = True
        return self._state_store


class _EmptyState:
    """A store without content. Everything but reading a value is handed to FastMCP's own store."""

    def __init__(self, server: ProjectServer) -> None:
        self._server = server

    async def get(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server.open_state(), name)
