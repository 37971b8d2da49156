"""What may be done in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from deepwork_sql.requests import FORGET, KEPT_MILLISECONDS, Answer, Request
from deepwork_sql.statement import Statement
from deepwork_sql.text import check_json, check_text

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Executable

# How an event is written into the feed; `feed` says in which order events are read.
_COLUMNS = ("source", "event", "workflow_id", "at", "principal", "data")
# The id of the transaction that writes, counted from where the feed of this cluster begins.
_XID = {
    "sqlite": "0",
    "postgresql": 'CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT) + (SELECT "offset" FROM deepwork_feed)',
}
_APPENDING = f"INSERT INTO deepwork_events (xid, {', '.join(_COLUMNS)}) VALUES ({{xid}}, :{', :'.join(_COLUMNS)})"

_APPEND = Statement({dialect: _APPENDING.format(xid=xid) for dialect, xid in _XID.items()}, json=["data"])


class Transaction:
    """One transaction, in a worker thread. It ends when the function that got it returns.

    Attributes:
        connection: The connection of SQLAlchemy, for statements without a method here.
    """

    def __init__(self, connection: Connection, *, clock: int | None = None) -> None:
        self.connection = connection
        self.has_events = False
        self._clock = clock

    def part(self) -> Transaction:
        """Return the same transaction for one of several changes in it."""
        return Transaction(self.connection, clock=self._clock)

    @property
    def dialect(self) -> Literal["sqlite", "postgresql"]:
        """The engine: `sqlite` or `postgresql`."""
        return "sqlite" if self.connection.dialect.name == "sqlite" else "postgresql"

    @cached_property
    def now(self) -> int:
        """Milliseconds since 1970 by the clock of the database, read once in a transaction."""
        if self._clock is not None:
            return self._clock
        return read_clock(self.connection)

    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Run a statement."""
        return self.connection.execute(statement, parameters)

    def run(self, statement: Statement, **arguments: Any) -> int:
        """Run a statement of a module, and return how many rows it has changed."""
        return statement.run(self.connection, arguments)

    def run_each(self, statement: Statement, arguments: Iterable[Mapping[str, Any]]) -> None:
        """Run such a statement once for each set of arguments."""
        statement.run_each(self.connection, arguments)

    def rows(self, statement: Statement, **arguments: Any) -> list[Any]:
        """Run such a statement, and return its rows, whose values are attributes."""
        return statement.rows(self.connection, arguments)

    def row(self, statement: Statement, **arguments: Any) -> Any:
        """Run such a statement that has one row at most, and return it; None if it has none."""
        rows = statement.rows(self.connection, arguments)
        return rows[0] if rows else None

    def emit(
        self,
        source: str,
        event: str,
        *,
        workflow_id: str | None,
        data: Mapping[str, Any],
        principal: str | None = None,
    ) -> None:
        """Write an event, which readers of the feed see once this transaction is committed.

        Args:
            source: The name of the plugin.
            event: What happened, such as `task:updated`.
            workflow_id: To what it belongs.
            data: What else is known; any JSON.
            principal: Who caused it.

        Raises:
            UnstorableText: A text has a character that cannot be stored.
        """
        check_json("data", data)
        for field, text in (("workflow_id", workflow_id), ("principal", principal)):
            if text is not None:
                check_text(field, text)
        values = {"source": source, "event": event, "workflow_id": workflow_id, "data": data, "principal": principal}
        self.emit_all([values])

    def emit_all(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Write several events, in their order; each has the columns of `_APPEND` but the time."""
        self.run_each(_APPEND, [{**event, "at": self.now} for event in events])
        self.has_events = True

    def lock(self, name: str) -> None:
        """Let one writer at a time through for this name, until the end of the transaction.

        On SQLite a transaction that writes is the only one anyway.
        """
        from deepwork_sql.driver import execute

        if self.dialect == "postgresql":
            execute(self.connection, locking(name), None)

    def once(
        self,
        *,
        principal: str,
        tool: str,
        request_id: str,
        arguments: Mapping[str, Any],
        work: Callable[[], Any],
    ) -> Any:
        """Do a piece of work once for each request id, and return its recorded result to the requests that repeat it.

        Work that raises is not recorded.

        Args:
            principal: Who asks; request ids of others are others.
            tool: For what.
            request_id: The id that the caller has given to this request.
            arguments: What is asked for.
            work: Does it, in this transaction, and returns a result of JSON.

        Raises:
            RequestConflict: The id was used with other arguments in the last 24 hours.
        """
        request = Request(self.connection, (principal, tool, request_id), arguments, self.now)
        self.lock(request.lock)
        answer = request.answer()
        if answer is not None:
            return answer.result
        result = work()
        request.record(result)
        return result

    def recorded(self, *, principal: str, tool: str, request_id: str, arguments: Mapping[str, Any]) -> Answer | None:
        """Return what `once` has recorded for a request; None if it has not been carried out yet.

        Raises:
            RequestConflict: The id was used with other arguments in the last 24 hours.
        """
        return Request(self.connection, (principal, tool, request_id), arguments, self.now).answer()

    def forget_old_requests(self) -> None:
        """Delete the requests that are too old to be repeated."""
        self.run(FORGET, until=self.now - KEPT_MILLISECONDS)


def locking(name: str) -> str:
    """Return the statement that makes PostgreSQL run one transaction at a time for a name."""
    from psycopg.sql import quote

    return f"SELECT pg_advisory_xact_lock(hashtextextended({quote(name)}, 0))"


def read_clock(connection: Connection) -> int:
    """Read the clock of the database. SQLite runs in this process, and has no other clock than it."""
    if connection.dialect.name == "sqlite":
        return time.time_ns() // 1_000_000
    return int(connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").scalar_one())
