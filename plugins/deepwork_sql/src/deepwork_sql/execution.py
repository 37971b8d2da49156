"""Transactions that are run again where that can help, in the thread of the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from deepwork.errors import DeepWorkError
from deepwork_sql.driver import execute
from deepwork_sql.engines import POOL, READ_ONLY, cleaned
from deepwork_sql.errors import DatabaseError
from deepwork_sql.retry import Retry, is_passing
from deepwork_sql.transaction import Transaction, locking

T = TypeVar("T")

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
_BEGIN_READING = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT {_NOW}"
_SERVER = "extract(epoch FROM pg_postmaster_start_time())::text"
_START = f"SELECT pg_current_xact_id()::text::bigint, {_NOW}, {_SERVER}"
_STATUS = f"SELECT pg_xact_status(%(xid)s::text::xid8), {_SERVER}"
_EVENT = (
    "SELECT EXISTS (SELECT FROM deepwork_events "
    'WHERE xid = %(xid)s + (SELECT "offset" FROM deepwork_feed) AND at = %(clock)s)'
)
_NO_PERMISSION = "42501"
_NO_SUCH_TRANSACTION = "22023"


class Committed(NamedTuple):
    """What a change has given."""

    result: Any
    has_events: bool


class Executor:
    """Runs functions in transactions of one engine.

    Attributes:
        dialect: The engine, `sqlite` or `postgresql`.
        threads: So many may use it at a time; a connection is left for who listens.
    """

    def __init__(self, engine: Engine, retry: Retry) -> None:
        self._engine = engine
        self._reading = engine.execution_options(**{READ_ONLY: True})
        self._retry = retry
        self.dialect: Literal["sqlite", "postgresql"] = "sqlite" if engine.dialect.name == "sqlite" else "postgresql"
        self.threads = POOL

    def write(self, change: Callable[[Transaction], Any], lock: str | None = None) -> Committed:
        """Run a change until it is committed."""
        write = _Write(self._engine, change, lock)
        return self._repeat(write.attempt, lambda: write.is_in_doubt)

    def write_once(self, change: Callable[[Transaction], T], lock: str | None = None) -> T | None:
        """Run a change until it is committed, but only once; None if nothing of it was.

        Raises:
            DatabaseError: The database could not be reached, or has not said whether the change was made.
        """
        has_run = False

        def run_once(transaction: Transaction) -> T:
            nonlocal has_run
            if has_run:
                raise _RolledBack
            has_run = True
            return change(transaction)

        write = _Write(self._engine, run_once, lock)
        try:
            result: T = self._repeat(write.attempt, lambda: write.is_in_doubt).result
        except _RolledBack:
            return None
        except (DatabaseError, DBAPIError):
            if not has_run or write.is_in_doubt:
                raise
            return None
        return result

    def read(self, query: Callable[[Transaction], T]) -> T:
        """Run a query."""

        def attempt() -> T:
            with self._reading.connect() as connection, connection.begin():
                return query(Transaction(connection, clock=_start_reading(connection)))

        return self._repeat(attempt)

    def look(self, query: Callable[[Transaction], T]) -> T:
        """Run a query of one statement, which sees one moment of the database without a transaction."""

        def attempt() -> T:
            with self._reading.connect() as connection:
                return query(Transaction(connection))

        return self._repeat(attempt)

    def _repeat(self, attempt: Callable[[], T], is_in_doubt: Callable[[], bool] = lambda: False) -> T:
        pauses = self._retry.pauses()
        while True:
            try:
                return attempt()
            except DBAPIError as error:
                if isinstance(error, IntegrityError):
                    raise
                self._clean(error)
                if not is_passing(error) or not next(pauses, False):
                    raise (_doubt() if is_in_doubt() else _explanation(error)) from error
            except _UnknownOutcome as error:
                if not next(pauses, False):
                    raise _doubt() from error
            except PoolTimeout as error:
                if is_in_doubt():
                    raise _doubt() from error
                raise DatabaseError("No connection to the database was free in time", hint="Call again.") from error

    def _clean(self, error: BaseException) -> None:
        """Take passwords out of an error and its causes, which a traceback would show."""
        cause: BaseException | None = error
        while cause is not None:
            cause.args = tuple(cleaned(self._engine, arg) if isinstance(arg, str) else arg for arg in cause.args)
            cause = cause.__cause__ or cause.__context__


class _UnknownOutcome(Exception):
    """PostgreSQL has not finished a transaction whose connection broke."""


class _RolledBack(Exception):
    """A change that runs only once was not committed."""


class _Begun(NamedTuple):
    """A transaction of PostgreSQL: its id, the time, and since when the server has run."""

    xid: int
    clock: int
    server: str


class _Unacknowledged(NamedTuple):
    """A transaction whose commit may have been sent."""

    begun: _Begun
    committed: Committed


class _Write:
    """One change on its way to be committed once.

    A connection that breaks during COMMIT leaves open whether the transaction was committed. PostgreSQL is asked for
    that before the change is run again.
    """

    def __init__(self, engine: Engine, change: Callable[[Transaction], Any], lock: str | None) -> None:
        self._engine = engine
        self._change = change
        self._lock = lock
        self._unacknowledged: _Unacknowledged | None = None

    @property
    def is_in_doubt(self) -> bool:
        """True if the change may have been committed."""
        return self._unacknowledged is not None

    def attempt(self) -> Committed:
        """Run the change, unless it turns out that the last attempt was committed."""
        with self._engine.connect() as connection:
            if self._unacknowledged is not None and _is_committed(connection, self._unacknowledged):
                return self._unacknowledged.committed
            self._unacknowledged = None
            with connection.begin() as outer:
                begun = _start(connection, self._lock)
                transaction = Transaction(connection, clock=begun and begun.clock)
                committed = Committed(self._change(transaction), transaction.has_events)
                if begun is not None:
                    self._unacknowledged = _Unacknowledged(begun, committed)
                try:
                    outer.commit()
                except DBAPIError as error:
                    if not is_passing(error):  # the database has answered that it was not committed
                        self._unacknowledged = None
                    connection.invalidate(error)  # SQLAlchemy would take it back with its transaction still open
                    raise
        return committed


def _start(connection: Connection, lock: str | None) -> _Begun | None:
    """Begin a transaction of PostgreSQL with its lock, its id and the time, in one message.

    On SQLite it has begun, is the only writer, and its commit is never in doubt.
    """
    if connection.dialect.name == "sqlite":
        return None
    locked = "" if lock is None else f"{locking(lock)}; "
    return _Begun(*_last_row(connection, f"{_BEGIN}{locked}{_START}"))


def _start_reading(connection: Connection) -> int | None:
    """Begin a transaction of PostgreSQL that sees one moment of the database, and give the time."""
    if connection.dialect.name == "sqlite":
        return None
    (clock,) = _last_row(connection, _BEGIN_READING)
    return int(clock)


def _last_row(connection: Connection, statements: str) -> Any:
    """Send several statements as one message, which cannot be prepared, and give the row of the last one."""
    cursor = execute(connection, statements, None, prepare=False)
    while cursor.nextset():
        pass
    return cursor.fetchone()


def _is_committed(connection: Connection, sent: _Unacknowledged) -> bool:
    """Ask PostgreSQL what became of a transaction.

    One that a crash has undone leaves its id to a later transaction, whose status says nothing of it: its events would
    be there, and without events it cannot be known.
    """
    xid, clock, server = sent.begun
    with connection.begin():
        try:
            status, server_now = connection.exec_driver_sql(_STATUS, {"xid": xid}).one()
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _NO_SUCH_TRANSACTION:
                return False
            raise
        if status == "in progress" and server_now == server:
            raise _UnknownOutcome
        if status != "committed":
            return False
        if connection.exec_driver_sql(_EVENT, {"xid": xid, "clock": clock}).scalar_one():
            return True
    if not sent.committed.has_events and server_now != server:
        raise _doubt()
    return not sent.committed.has_events


def _doubt() -> DatabaseError:
    return DatabaseError(
        "The database has not said whether the change was made",
        hint="Look whether it was, before you call again.",
    )


def _explanation(error: DBAPIError) -> DeepWorkError | DBAPIError:
    """Make an error for people of what only they can fix; what is a mistake of ours stays as it is."""
    is_ours = isinstance(error, ProgrammingError | InterfaceError)
    if is_ours and getattr(error.orig, "sqlstate", None) != _NO_PERMISSION:
        return error
    reason = str(error.orig).strip().partition("\n")[0]
    return DatabaseError(
        f"The database failed: {reason}; nothing was changed",
        hint="Fix the cause, then call again. `deepwork store info` says which database it is.",
    )
