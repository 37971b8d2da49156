"""How far the reviews of a step are."""

from __future__ import annotations

import time

import anyio


class ReviewProgress:
    """How far a review is, for its callers. Changed by the gate, read by every caller.

    Attributes:
        total: How many evaluations there are; none are told before there is one.
        completed: How many of them are over.
        change: Set at the next change, when another one takes its place.
    """

    def __init__(self) -> None:
        self._start = time.monotonic()
        self.change = anyio.Event()
        self._running: list[str] = []
        self.total = 0
        self.completed = 0

    def begin(self, review: str) -> None:
        """Note that a review has begun."""
        self._running.append(review)
        self.notify()

    def end(self, review: str) -> None:
        """Note that a review is over, with any result."""
        self._running.remove(review)
        self.completed += 1
        self.notify()

    def leave_out(self, count: int) -> None:
        """Note that reviews are not made, because an earlier one of the same work has not passed."""
        self.completed += count
        self.notify()

    def notify(self) -> None:
        """Wake all who wait for a change."""
        self.change.set()
        self.change = anyio.Event()

    @property
    def report(self) -> tuple[float, int, str]:
        """What callers are told: a number that grows with every look, as MCP wants it, the total, and what runs.

        The number stays under the total until all are done.
        """
        seconds = time.monotonic() - self._start
        value = self.completed + (seconds / (seconds + 60) if self.completed < self.total else 0)
        names = ", ".join(self._running[:4])
        more = f" and {len(self._running) - 4} more" if len(self._running) > 4 else ""
        running = f"; reviewing {names}{more}" if names else ""
        return value, self.total, f"{self.completed} of {self.total} reviews done after {seconds:.0f} s{running}"
