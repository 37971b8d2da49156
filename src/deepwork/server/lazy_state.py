"""A FastMCP server that starts without what nobody has asked for yet."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP


class LightServer(FastMCP[Any]):
    """Opens FastMCP's session state when something is first put there.

    Every listing of tools looks into that state, and the library behind it takes a fifth of the whole start to import.
    `_state_store` is a private name: if FastMCP no longer asks for it, nothing here is used.
    """

    _has_state = False

    @property
    def _state_store(self) -> Any:
        return super()._state_store if self._has_state else _Nothing(self)

    def open_state(self) -> Any:
        """Give FastMCP's own store, from now on."""
        self._has_state = True
        return self._state_store


class _Nothing:
    """A store in which nothing is; whatever else than reading is wanted opens the real one."""

    def __init__(self, server: LightServer) -> None:
        self._server = server

    async def get(self, *_args: Any, **_kwargs: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server.open_state(), name)
