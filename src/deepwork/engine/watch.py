"""How far a review is, for those who wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio


class Watch:
    """What runs and what is done. Changed by the gate, read by every caller."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._news = anyio.Event()
        self._running: list[str] = []
        self.total = 0
        self.done = 0

    def expect(self, total: int) -> None:
        """Say how many reviews there are."""
        self.total = total
        self.tell()

    def begin(self, review: str) -> None:
        """Say that a review has begun."""
        self._running.append(review)
        self.tell()

    def end(self, review: str) -> None:
        """Say that a review is over, however it went."""
        self._running.remove(review)
        self.done += 1
        self.tell()

    def tell(self) -> None:
        """Wake all who wait for news."""
        self._news.set()
        self._news = anyio.Event()

    async def news(self, seconds: float) -> None:
        """Wait until something changes, at most so long."""
        with anyio.move_on_after(seconds):
            await self._news.wait()

    @property
    def progress(self) -> float:
        """A number that grows with every look, as MCP wants it, and stays under the total until all are done."""
        elapsed = self._clock() - self._began
        return self.done + (elapsed / (elapsed + 60) if self.done < self.total else 0)

    @property
    def text(self) -> str:
        """Tell it to people."""
        shown = ", ".join(self._running[:4])
        more = f" and {len(self._running) - 4} more" if len(self._running) > 4 else ""
        running = f"; reviewing {shown}{more}" if shown else ""
        return f"{self.done} of {self.total} reviews done after {self._clock() - self._began:.0f} s{running}"
