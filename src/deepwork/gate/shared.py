"""Reviews that run: equal calls share one, and it ends with its last caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Generic, TypeVar

import anyio

from deepwork.errors import StateError
from deepwork.gate.progress import ReviewProgress

ResultT = TypeVar("ResultT")

HEARTBEAT_SECONDS = 5.0

Report = Callable[[ReviewProgress], Awaitable[None]]
Run = Callable[[ReviewProgress], Awaitable[ResultT]]


class _SharedReview(Generic[ResultT]):
    """One review in a task of its own, for it must outlive the caller that began it."""

    def __init__(self, run: Run[ResultT]) -> None:
        self.callers = 0
        self.is_ending = False
        self.progress = ReviewProgress()
        self.ended = anyio.Event()
        self.replaced: anyio.Event | None = None
        self._scope = anyio.CancelScope()
        self._result: ResultT | None = None
        self._error: Exception | None = None
        # A context of its own: that of the first caller would name its connection to the others.
        self._task = asyncio.get_running_loop().create_task(self._run(run), context=Context())

    async def _run(self, run: Run[ResultT]) -> None:
        try:
            with self._scope:
                self._result = await run(self.progress)
        except Exception as error:  # noqa: BLE001 - every caller gets it
            self._error = error
        finally:
            self.is_ending = True
            self.ended.set()
            self.progress.notify()

    async def wait(self, report: Report) -> ResultT | None:
        """Wait for the result, and report the progress meanwhile."""
        self.callers += 1
        try:
            while not self.ended.is_set():
                await report(self.progress)
                if not self.ended.is_set():
                    await self.progress.wait_for_change(HEARTBEAT_SECONDS)
        finally:
            self.callers -= 1
            if not self.callers:
                await self.end()
        if self.replaced:
            await self.replaced.wait()
            return None
        if self._error:
            raise self._error
        if self._result is None:
            raise StateError("The review was ended with the server; nothing else was changed", hint="Call again.")
        return self._result

    async def end(self) -> None:
        """Cancel the review if it still runs, and wait for its end: whatever it has started is then gone."""
        self.is_ending = True
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.ended.wait()


class SharedReviews(Generic[ResultT]):
    """All reviews that run in this server, by the step that is reviewed and by what was submitted for it."""

    def __init__(self) -> None:
        self._reviews: dict[tuple[Hashable, Hashable], _SharedReview[ResultT]] = {}

    async def run(self, step: Hashable, content: Hashable, run: Run[ResultT], report: Report) -> ResultT | None:
        """Join the review of an equal call, or begin one.

        Returns:
            The result; None if another call has overridden the review meanwhile, and that call is through.

        Raises:
            StateError: The review was ended with the server.
        """
        key = (step, content)
        review = self._reviews.get(key)
        if review is None or review.is_ending:
            review = self._reviews[key] = _SharedReview(run)
        try:
            return await review.wait(report)
        finally:
            if review.is_ending and self._reviews.get(key) is review:
                del self._reviews[key]

    @asynccontextmanager
    async def replaced(self, step: Hashable) -> AsyncIterator[None]:
        """End the reviews of a step, and keep their callers waiting until the block is through."""
        reviews = [review for (subject, _), review in self._reviews.items() if subject == step and not review.is_ending]
        replacement = anyio.Event()
        try:
            for review in reviews:
                review.replaced = replacement
                await review.end()
            yield
        finally:
            replacement.set()

    async def close(self) -> None:
        """End everything."""
        for review in [*self._reviews.values()]:
            await review.end()
