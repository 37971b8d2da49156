"""A FastMCP server that imports the library for session state only when a tool stores something."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP


class LazyStateServer(FastMCP[Any]):
    """Creates FastMCP's session state when something is stored in it for the first time.

    FastMCP reads this state each time it lists its tools, and importing the library behind it takes a fifth of the
    whole start. `_state_store` is a private name of FastMCP: if FastMCP stops using it, this class changes nothing.
    """

    _has_state = False

    @property
    def _state_store(self) -> Any:
        return super()._state_store if self._has_state else _EmptyState(self)

    def open_state(self) -> Any:
        """Return FastMCP's own store, from now on."""
        self._has_state = True
        return self._state_store


class _EmptyState:
    """A store without content. Everything but reading a value is handed to FastMCP's own store."""

    def __init__(self, server: LazyStateServer) -> None:
        self._server = server

    async def get(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server.open_state(), name)
