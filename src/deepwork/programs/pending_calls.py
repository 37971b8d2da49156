"""Counts the calls that are not answered yet, so that a server can wait a moment for them when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import anyio

DRAIN_SECONDS = 0.5


class PendingCalls:
    """The calls without an answer, each by a key. Keys are counted, because clients may use an id twice."""

    def __init__(self) -> None:
        self._keys: Counter[Hashable] = Counter()
        self._empty = anyio.Event()

    def add(self, key: Hashable) -> None:
        """Note a call that has arrived."""
        self._keys[key] += 1

    def discard(self, key: Hashable) -> None:
        """Note that a call was answered or cancelled."""
        if self._keys[key] > 1:
            self._keys[key] -= 1
        else:
            self._keys.pop(key, None)
        if not self._keys:
            self._empty.set()
            self._empty = anyio.Event()

    async def drain(self) -> None:
        """Wait until every call is answered, for `DRAIN_SECONDS` at most."""
        with anyio.move_on_after(DRAIN_SECONDS):
            while self._keys:
                await self._empty.wait()
