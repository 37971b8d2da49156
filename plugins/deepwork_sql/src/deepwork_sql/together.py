"""Changes that wait at the same time share a transaction, and with it the locks and the commit.

Each change has its own outcome: a change that refuses is rolled back to its savepoint, and the others stay. No outcome
is known before the transaction is durable. Where the database fails, for one change or at the commit, the changes
without an outcome are made again, each in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from sqlalchemy.exc import DBAPIError

from deepwork.errors import DeepWorkError
from deepwork.programs.work_queue import Batches, WorkQueue
from deepwork_sql.driver import execute
from deepwork_sql.execution import Committed, Executor
from deepwork_sql.transaction import Transaction

ItemT = TypeVar("ItemT")
Change = Callable[[Transaction], Any]

# PostgreSQL looks up transactions faster that have at most 64 savepoints.
MOST_TOGETHER = 50

# Of changes that take no lock first one may wait for a row, and the next ones need not.
_WRITERS_OF_ROWS = 2

_SAVEPOINT = "SAVEPOINT change"
_RELEASE = "RELEASE SAVEPOINT change"
_ROLL_BACK = "ROLLBACK TO SAVEPOINT change"


class Refused(NamedTuple):
    """A change that was not made, because it raised this error."""

    error: Exception


# None of a change that has to be made again, by itself.
Outcome = Committed | Refused | None


class Item(Generic[ItemT]):
    """Something that waits to be committed, and what has become of it."""

    def __init__(self, content: ItemT) -> None:
        self.content = content
        self.outcome: Outcome = None


class Together(Generic[ItemT]):
    """Commits together what waits together.

    Args:
        executor: Runs the transactions.
        queue: Its threads do the work.
        change: Makes the change of some items; it gives the outcome of each.
        lock: Taken before anything else.
    """

    def __init__(
        self,
        executor: Executor,
        queue: WorkQueue,
        change: Callable[[Sequence[ItemT]], Callable[[Transaction], list[Outcome]]],
        lock: str | None = None,
    ) -> None:
        self._executor = executor
        self._queue = queue
        self._change = change
        self._lock = lock
        self._batches: Batches[Item[ItemT]] = Batches(queue, self._commit, largest=MOST_TOGETHER)

    async def commit(self, content: ItemT) -> Committed:
        """Commit one item with the others that wait. Once begun this ends, also when the caller is cancelled.

        Raises:
            DatabaseError: The database did not answer; nothing was changed.
        """
        item = Item(content)
        await self._batches.run(item)
        if item.outcome is None:
            await self._queue.submit(partial(self._commit_alone, item)).result()
        if isinstance(item.outcome, Refused):
            raise item.outcome.error
        assert item.outcome
        return item.outcome

    def _commit(self, items: Sequence[Item[ItemT]]) -> None:
        if len(items) == 1:
            self._commit_alone(items[0])
            return
        try:
            change = self._change([item.content for item in items])
            outcomes = self._executor.write_once(change, self._lock)
        except (DeepWorkError, DBAPIError) as error:
            outcomes = [Refused(error)] * len(items)
        for item, outcome in zip(items, outcomes or (), strict=False):
            item.outcome = outcome

    def _commit_alone(self, item: Item[ItemT]) -> None:
        """Commit one item in a transaction that is repeated where that can help."""
        try:
            outcomes = self._executor.write(self._change([item.content]), self._lock).result
        except Exception as error:  # noqa: BLE001 - raised again by `commit`; the other items go on
            outcomes = [Refused(error)]
        item.outcome = outcomes[0]


class Writers:
    """All that writes to one database.

    SQLite has one writer at a time, so that everything which waits is committed together. On PostgreSQL changes share a
    transaction that take the same lock first: two servers whose changes take locks one by one, in different orders,
    could wait for each other.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._is_sqlite = executor.dialect == "sqlite"
        self._queue = WorkQueue("deepwork-writes", threads=1)
        self._limiter = CapacityLimiter(executor.threads)
        self._changes: dict[str | None, Together[Change]] = {}

    async def commit(self, change: Change, lock: str | None) -> Committed:
        """Commit a change.

        Raises:
            DatabaseError: The database did not answer; nothing was changed.
        """
        if self._is_sqlite:
            lock = None
        elif lock is None:
            return await to_thread.run_sync(self._executor.write, change, limiter=self._limiter)
        together = self._changes.get(lock)
        if together is None:
            together = self._changes[lock] = Together(self._executor, self._own_queue(1), in_savepoints, lock)
        return await together.commit(change)

    def together(self, change: Callable[[Sequence[ItemT]], Callable[[Transaction], list[Outcome]]]) -> Together[ItemT]:
        """Return what commits together items of one kind, which lock rows in one order."""
        return Together(self._executor, self._own_queue(_WRITERS_OF_ROWS), change)

    def _own_queue(self, threads: int) -> WorkQueue:
        return self._queue if self._is_sqlite else WorkQueue("deepwork-writes", threads=threads)


def in_savepoints(changes: Sequence[Change]) -> Callable[[Transaction], list[Outcome]]:
    """Return the change that makes several, each in a savepoint. One by itself needs none."""
    if len(changes) == 1:
        return lambda transaction: [_made(transaction, changes[0])]
    return lambda transaction: [*_each_in_savepoint(transaction, changes)]


def _each_in_savepoint(transaction: Transaction, changes: Sequence[Change]) -> Iterator[Outcome]:
    opening = [_SAVEPOINT]
    for change in changes:
        _control(transaction, opening)
        try:
            made = _made(transaction.part(), change)
            transaction.has_events |= made.has_events
            yield made
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            _control(transaction, [_ROLL_BACK])
            opening = []
            yield None
        except Exception as error:  # noqa: BLE001 - the outcome of this change, for its caller
            _control(transaction, [_ROLL_BACK])
            opening = []
            yield Refused(error)
        else:
            opening = [_RELEASE, _SAVEPOINT]


def _made(transaction: Transaction, change: Change) -> Committed:
    return Committed(change(transaction), transaction.has_events)


def _control(transaction: Transaction, statements: Sequence[str]) -> None:
    """Send statements about savepoints, to PostgreSQL as one message, which cannot be prepared."""
    if transaction.dialect == "sqlite":
        for statement in statements:
            execute(transaction.connection, statement)
    elif statements:
        execute(transaction.connection, "; ".join(statements), None, prepare=False)
