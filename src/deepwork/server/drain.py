"""What has been asked and not yet answered: at its end a server gives that a moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import anyio

DRAIN_SECONDS = 0.5


class InFlight:
    """The requests under way, by anything that tells them apart; clients may use an id twice."""

    def __init__(self) -> None:
        self._keys: Counter[Hashable] = Counter()
        self._change = anyio.Event()

    def add(self, key: Hashable) -> None:
        """Note a request that has come."""
        self._keys[key] += 1

    def discard(self, key: Hashable) -> None:
        """Note that a request has been answered, or needs no answer any more."""
        if self._keys[key] > 1:
            self._keys[key] -= 1
        else:
            self._keys.pop(key, None)
        if not self._keys:
            self._change.set()
            self._change = anyio.Event()

    async def drain(self) -> None:
        """Wait until all are answered, but not long."""
        with anyio.move_on_after(DRAIN_SECONDS):
            while self._keys:
                await self._change.wait()
