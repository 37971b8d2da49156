"""The hub of a server: it reads the feed once for all who follow it, and only while there are any."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

import anyio

from deepwork_sql.errors import DatabaseError
from deepwork_sql.events import Cursor, Event, EventFilter

if TYPE_CHECKING:
    from deepwork_sql.access import Database
    from deepwork_sql.wake_ups import WakeUps

# So many events are read at once.
PAGE = 500
# So many events wait for a follower. One that takes them more slowly reads from the feed what it has missed.
MAX_WAITING = 1_000
# Polling is the truth and wake-ups only make it faster: these are the pauses after the last sign of life.
PAUSES = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)


class Follower:
    """The events that one follower has still to take.

    Attributes:
        has_missed: Whether there are events that it has to read from the feed, as at its begin.
    """

    def __init__(self, event_filter: EventFilter) -> None:
        self.has_missed = True
        self._event_filter = event_filter
        self._events: deque[Event] = deque()
        self._changed = anyio.Event()
        self._failure: Exception | None = None

    def offer(self, event: Event) -> None:
        """Keep an event that the follower wants; if too many wait, only note that there are some."""
        event_filter = self._event_filter
        if event_filter.source in (None, event.source) and event_filter.workflow_id in (None, event.workflow_id):
            if len(self._events) == MAX_WAITING:
                self._events.clear()
                self.has_missed = True
            self._events.append(event)
            self._changed.set()

    def fail(self, failure: Exception) -> None:
        """Tell the follower that no more events come."""
        self._failure = failure
        self._changed.set()

    async def take(self) -> list[Event]:
        """Wait for events, and return all that there are.

        Raises:
            DatabaseError: No more come, because the database does not answer.
        """
        while not self._events:
            if self._failure is not None:
                raise self._failure
            self._changed = anyio.Event()
            await self._changed.wait()
        events = [*self._events]
        self._events.clear()
        return events


class _Reading:
    """One run of the reader, from the first follower to the last."""

    def __init__(self) -> None:
        self.followers: set[Follower] = set()
        self.scope = anyio.CancelScope()


class Hub:
    """Reads the feed, and hands events to followers."""

    def __init__(self, database: Database, wake_ups: WakeUps) -> None:
        self._database = database
        self._wake_ups = wake_ups
        self._reading: _Reading | None = None
        self._starting = anyio.Lock()

    async def follow(self, after: str | None, event_filter: EventFilter) -> AsyncGenerator[Event, None]:
        """Yield the events after a cursor for ever: first those of the feed, then new ones."""
        follower = Follower(event_filter)
        reading = await self._join(follower)
        try:
            while True:
                if follower.has_missed:
                    follower.has_missed = False
                    async for event in self._read(after, event_filter):
                        yield event
                        after = event.id
                events = await follower.take()
                # Events that waited may have been read from the feed, too.
                last = Cursor.parse(after) if after is not None else None
                for event in events if not follower.has_missed else ():
                    if last is None or Cursor.parse(event.id) > last:
                        yield event
                        after = event.id
        finally:
            self._leave(reading, follower)

    async def _read(self, after: str | None, event_filter: EventFilter) -> AsyncIterator[Event]:
        """Yield what the feed has after a cursor."""
        while True:
            events = await self._database.feed(
                after, limit=PAGE, source=event_filter.source, workflow_id=event_filter.workflow_id
            )
            for event in events:
                yield event
                after = event.id
            if len(events) < PAGE:
                return

    async def _join(self, follower: Follower) -> _Reading:
        """Have a follower told of all events from now on; what came before it reads from the feed afterwards."""
        async with self._starting:
            if self._reading is None:
                after, self._reading = await self._database.end_of_feed(), _Reading()
                self._wake_ups.tasks.start_soon(self._hand_out, self._reading, after)
            self._reading.followers.add(follower)
            return self._reading

    def _leave(self, reading: _Reading, follower: Follower) -> None:
        reading.followers.discard(follower)
        if not reading.followers:
            self._end(reading)
            reading.scope.cancel()

    def _end(self, reading: _Reading) -> None:
        if self._reading is reading:
            self._reading = None

    async def _hand_out(self, reading: _Reading, after: str) -> None:
        failure: Exception = DatabaseError("the database is closed")
        try:
            with reading.scope:
                await self._offer_all(reading, after)
        except Exception as error:  # noqa: BLE001 - followers raise it; here it would end the database for all others
            failure = error
        finally:
            self._end(reading)
            for follower in reading.followers:
                follower.fail(failure)

    async def _offer_all(self, reading: _Reading, after: str) -> None:
        pauses = iter(PAUSES)
        while True:
            wake_up = self._wake_ups.next()
            events = await self._database.feed(after, limit=PAGE)
            for event in events:
                for follower in reading.followers:
                    follower.offer(event)
                after = event.id
            if not events:
                with anyio.move_on_after(next(pauses, PAUSES[-1])):
                    await wake_up.wait()
                if not wake_up.is_set():
                    continue
            pauses = iter(PAUSES)
