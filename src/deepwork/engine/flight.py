"""Reviews in flight: equal calls share one, and it ends with its last caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Generic, TypeVar

import anyio

from deepwork.engine.watch import Watch
from deepwork.errors import StaleSession, StateError

ResultT = TypeVar("ResultT")

HEARTBEAT_SECONDS = 5.0

Tell = Callable[[Watch], Awaitable[None]]


class Flight(Generic[ResultT]):
    """One piece of work in a task of its own, for it must outlive the caller that began it."""

    def __init__(self, work: Callable[[Watch], Awaitable[ResultT]]) -> None:
        self.callers = 0
        self.is_ending = False
        self.watch = Watch()
        self.landed = anyio.Event()
        self.replaced: anyio.Event | None = None
        self._scope = anyio.CancelScope()
        self._result: ResultT | None = None
        self._error: Exception | None = None
        # A context of its own: that of the first caller would name its connection to the others.
        self._task = asyncio.get_running_loop().create_task(self._run(work), context=Context())

    async def _run(self, work: Callable[[Watch], Awaitable[ResultT]]) -> None:
        try:
            with self._scope:
                self._result = await work(self.watch)
        except Exception as error:  # noqa: BLE001 - every caller gets it
            self._error = error
        finally:
            self.is_ending = True
            self.landed.set()
            self.watch.tell()

    async def wait(self, tell: Tell) -> ResultT:
        """Wait for the result, and tell meanwhile how far it is."""
        self.callers += 1
        try:
            while not self.landed.is_set():
                await tell(self.watch)
                if not self.landed.is_set():
                    await self.watch.news(HEARTBEAT_SECONDS)
        finally:
            self.callers -= 1
            if not self.callers:
                await self.end()
        if self.replaced:
            # Somebody has overridden the review; what became of the step is known when that call is through.
            await self.replaced.wait()
            raise StaleSession("The review was ended by an override; call again")
        if self._error:
            raise self._error
        if self._result is None:
            raise StateError("The review was ended with the server; nothing else was changed", hint="Call again.")
        return self._result

    async def end(self) -> None:
        """Cancel the work if it still runs, and see it out: whatever it has started is then gone."""
        self.is_ending = True
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.landed.wait()


class Flights(Generic[ResultT]):
    """All reviews that run in this server. Keys are pairs: what is reviewed, and what was submitted."""

    def __init__(self) -> None:
        self._flights: dict[tuple[Hashable, Hashable], Flight[ResultT]] = {}

    async def share(
        self, about: Hashable, content: Hashable, work: Callable[[Watch], Awaitable[ResultT]], tell: Tell
    ) -> ResultT:
        """Join the flight of an equal call, or begin one.

        Raises:
            StaleSession: It was ended by an override.
            StateError: It was ended with the server.
        """
        key = (about, content)
        flight = self._flights.get(key)
        if flight is None or flight.is_ending:
            flight = self._flights[key] = Flight(work)
        try:
            return await flight.wait(tell)
        finally:
            if flight.is_ending and self._flights.get(key) is flight:
                del self._flights[key]

    @asynccontextmanager
    async def replaced(self, about: Hashable) -> AsyncIterator[bool]:
        """End what is under way about something, and keep its callers waiting until the block is through.

        Yields:
            Whether anything was ended.
        """
        flights = [one for (subject, _), one in self._flights.items() if subject == about and not one.is_ending]
        through = anyio.Event()
        try:
            for flight in flights:
                flight.replaced = through
                await flight.end()
            yield bool(flights)
        finally:
            through.set()

    async def close(self) -> None:
        """End everything."""
        for flight in [*self._flights.values()]:
            await flight.end()
