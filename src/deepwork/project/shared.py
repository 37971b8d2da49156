"""Objects that all plugins of one server share: a database engine, an HTTP client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, Generic

from deepwork.ports.context import ObjectT


class SharedObjects:
    """One object for each key, opened at its first use and closed in reverse order."""

    def __init__(self) -> None:
        self._keepers: dict[str, _Keeper[Any]] = {}

    async def get(self, key: str, open_: Callable[[], AbstractAsyncContextManager[ObjectT]]) -> ObjectT:
        """Return the object of this key; the first caller opens it, and others wait meanwhile."""
        keeper: _Keeper[ObjectT] | None = self._keepers.get(key)
        if keeper is None:
            keeper = self._keepers[key] = _Keeper(open_)
        try:
            return await keeper.item()
        except BaseException:
            if keeper.has_failed and self._keepers.get(key) is keeper:
                del self._keepers[key]  # the next caller tries again
            raise

    async def close(self) -> None:
        """Close what is open; the next use opens it anew.

        Raises:
            Exception: The first that an object has raised; the others are closed all the same.
        """
        errors: list[Exception] = []
        while self._keepers:
            _, keeper = self._keepers.popitem()
            try:
                await keeper.close()
            except Exception as error:  # noqa: BLE001 - raised below, once everything is closed
                errors.append(error)
        if errors:
            raise errors[0]


class _Keeper(Generic[ObjectT]):
    """Opens and closes one object in a task of its own.

    A context manager that holds a task group has to be left by the task that has entered it, and not by the call that
    happened to be the first to want the object.
    """

    def __init__(self, open_: Callable[[], AbstractAsyncContextManager[ObjectT]]) -> None:
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[ObjectT] = loop.create_future()
        self._closing = asyncio.Event()
        self._task = loop.create_task(self._keep(open_), context=Context())

    @property
    def has_failed(self) -> bool:
        """Whether the object could not be opened."""
        return self._opened.done() and not self._opened.cancelled() and self._opened.exception() is not None

    async def item(self) -> ObjectT:
        """Wait until the object is open. A caller that goes meanwhile cancels nothing for the others."""
        return await asyncio.shield(self._opened)

    async def close(self) -> None:
        """Close the object, and wait until that is done."""
        self._closing.set()
        await self._task

    async def _keep(self, open_: Callable[[], AbstractAsyncContextManager[ObjectT]]) -> None:
        try:
            async with open_() as item:
                self._opened.set_result(item)
                await self._closing.wait()
        except Exception as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)
            self._opened.exception()  # asyncio complains of an error that is never retrieved
