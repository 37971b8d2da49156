"""Objects that all plugins of one server share: a database engine, an HTTP client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

import anyio

ObjectT = TypeVar("ObjectT")


class SharedObjects:
    """One object for each key, opened at its first use and closed in reverse order with the server."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._objects: dict[str, Any] = {}
        self._opening: dict[str, anyio.Lock] = {}

    async def get(self, key: str, open_: Callable[[], AbstractAsyncContextManager[ObjectT]]) -> ObjectT:
        """Give the object of this key; the first who asks opens it, and others wait meanwhile."""
        async with self._opening.setdefault(key, anyio.Lock()):
            if key not in self._objects:
                self._objects[key] = await self._stack.enter_async_context(open_())
            found: ObjectT = self._objects[key]
        return found

    async def close(self) -> None:
        """Close what is open; the next use opens it anew."""
        self._objects.clear()
        await self._stack.aclose()
