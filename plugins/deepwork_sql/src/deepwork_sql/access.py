"""Access to one database, for all plugins of a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from anyio import CapacityLimiter, to_thread

from deepwork.programs.work_queue import WorkQueue
from deepwork_sql.events import EVERY_EVENT, Event, EventFilter
from deepwork_sql.hub import Hub
from deepwork_sql.transaction import Transaction

if TYPE_CHECKING:
    from deepwork_sql.execution import Committed, Executor
    from deepwork_sql.together import Outcome, Writers
    from deepwork_sql.wake_ups import WakeUps

T = TypeVar("T")
ItemT = TypeVar("ItemT")

# Runs a function in a worker thread.
Run = Callable[[Callable[[], Any]], Awaitable[Any]]


class Database:
    """One database. Opened by `deepwork_sql.database(context)`, and closed with the server.

    Attributes:
        dialect: Its engine, `sqlite` or `postgresql`.
        url: Where it is, without a password.
        machine: The name of this machine.
    """

    def __init__(self, executor: Executor, writers: Writers, wake_ups: WakeUps, *, url: str, machine: str) -> None:
        self.dialect: Literal["sqlite", "postgresql"] = executor.dialect
        self.url = url
        self.machine = machine
        self._executor = executor
        self._writers = writers
        self._wake_ups = wake_ups
        self._hub = Hub(self, wake_ups)
        if self.dialect == "sqlite":
            # It computes in the thread of its caller, so that few threads at a time get on best.
            self._run_read: Run = WorkQueue("deepwork-reads", threads=executor.threads).run
        else:  # a thread that waits for a server leaves the processor to others
            self._run_read = partial(to_thread.run_sync, limiter=CapacityLimiter(executor.threads))

    async def write(self, change: Callable[[Transaction], T], *, lock: str | None = None) -> T:
        """Run a change in a transaction, in a worker thread; it is durable when this returns.

        Changes that wait with the same lock share a transaction, each in a savepoint of its own; on SQLite all do. A
        change is run again from its start when another transaction was in its way or the connection broke, so it does
        nothing but database work. Once begun it ends, also when the caller is cancelled.

        Args:
            change: What is to be done.
            lock: Taken before anything else, as `Transaction.lock` would.

        Raises:
            DatabaseError: The database did not answer; nothing was changed.
        """
        result: T = self._announced(await self._writers.commit(change, lock))
        return result

    def together(
        self, change: Callable[[Sequence[ItemT]], Callable[[Transaction], list[Outcome]]]
    ) -> Callable[[ItemT], Awaitable[Any]]:
        """Return a function that commits an item with all that wait, such as sessions that are saved at the same time.

        Args:
            change: Makes the change of some items, which locks rows in one order; it gives the outcome of each. It may
                be asked again for a single item.
        """
        together = self._writers.together(change)

        async def commit(item: ItemT) -> Any:
            return self._announced(await together.commit(item))

        return commit

    def _announced(self, committed: Committed) -> Any:
        if committed.has_events:
            self._wake_ups.announce()
        return committed.result

    async def read(self, query: Callable[[Transaction], T]) -> T:
        """Run a query in one transaction that sees one state of the database, in a worker thread.

        Raises:
            DatabaseError: The database did not answer.
        """
        result: T = await self._run_read(partial(self._executor.read, query))
        return result

    def look_here(self, query: Callable[[Transaction], T]) -> T:
        """Run a query of one statement without a transaction, in the thread of the caller, which blocks.

        Raises:
            DatabaseError: The database did not answer.
        """
        return self._executor.look(query)

    def write_here(self, change: Callable[[Transaction], None]) -> None:
        """Run a change that emits no events as `write` does, but in the thread of the caller, which blocks.

        Raises:
            DatabaseError: The database did not answer; nothing was changed.
        """
        self._executor.write(change)

    async def feed(
        self, after: str | None, *, limit: int = 1000, source: str | None = None, workflow_id: str | None = None
    ) -> list[Event]:
        """Read the events after a cursor, the oldest first; without a cursor from the very first.

        An event that is committed later never comes before an event that was read.

        Args:
            after: The `id` of the last event that was seen, or `end_of_feed()`.
            limit: At most this many.
            source: Only events of this plugin.
            workflow_id: Only events of this workflow.

        Raises:
            ArgumentError: The cursor is not the id of an event.
        """
        from deepwork_sql import feed

        event_filter = EventFilter(source=source, workflow_id=workflow_id)
        return await self.read(lambda transaction: feed.read(transaction, after, limit, event_filter))

    async def history(
        self, before: str | None = None, event_filter: EventFilter = EVERY_EVENT, *, limit: int = 100
    ) -> list[Event]:
        """Read the events before a cursor, the newest first; without a cursor from the very last.

        For people who look back. An event that is committed later may come in between: to miss none, use `follow`.

        Raises:
            ArgumentError: The cursor is not the id of an event.
        """
        from deepwork_sql import feed

        return await self.read(lambda transaction: feed.read_back(transaction, before, limit, event_filter))

    async def end_of_feed(self) -> str:
        """Return the cursor of now: after it come the events that no reader can have seen yet."""
        from deepwork_sql import feed

        return await self.read(feed.end)

    def follow(
        self, after: str | None, *, source: str | None = None, workflow_id: str | None = None
    ) -> AsyncGenerator[Event, None]:
        """Yield the events after a cursor for ever, each soon after its transaction is committed.

        All who follow share one reader of the feed. Whoever takes events slowly misses none.
        """
        return self._hub.follow(after, EventFilter(source=source, workflow_id=workflow_id))
