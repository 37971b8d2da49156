"""How far a review is, for those who wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio


class ReviewProgress:
    """What runs and what is done. Changed by the gate, read by every caller."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._change = anyio.Event()
        self._running: list[str] = []
        self.total = 0
        self.completed = 0

    def expect(self, total: int) -> None:
        """Say how many reviews there are."""
        self.total = total
        self.notify()

    def begin(self, review: str) -> None:
        """Say that a review has begun."""
        self._running.append(review)
        self.notify()

    def end(self, review: str) -> None:
        """Say that a review is over, however it went."""
        self._running.remove(review)
        self.completed += 1
        self.notify()

    def notify(self) -> None:
        """Wake all who wait for a change."""
        self._change.set()
        self._change = anyio.Event()

    async def wait_for_change(self, seconds: float) -> None:
        """Wait until something changes, at most so long."""
        with anyio.move_on_after(seconds):
            await self._change.wait()

    @property
    def value(self) -> float:
        """A number that grows with every look, as MCP wants it, and stays under the total until all are done."""
        elapsed = self._clock() - self._start
        return self.completed + (elapsed / (elapsed + 60) if self.completed < self.total else 0)

    @property
    def text(self) -> str:
        """Tell people what runs."""
        names = ", ".join(self._running[:4])
        more = f" and {len(self._running) - 4} more" if len(self._running) > 4 else ""
        running = f"; reviewing {names}{more}" if names else ""
        seconds = self._clock() - self._start
        return f"{self.completed} of {self.total} reviews done after {seconds:.0f} s{running}"
