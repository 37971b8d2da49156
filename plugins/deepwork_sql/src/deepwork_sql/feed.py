"""The event feed: written by the transaction that causes an event, read in an order that skips none.

Transactions of PostgreSQL commit in another order than they get sequence numbers in, so a reader that remembers the
last number would miss events. The cursor is the id of the transaction and the number, and only transactions are read
that are older than every one that still runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    bindparam,
    insert,
    literal,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)

from deepwork.api import ArgumentError
from deepwork_sql.events import CORE, Event, Viewer
from deepwork_sql.prepared import Prepared
from deepwork_sql.tables import events, feeds, sessions
from deepwork_sql.transaction import Transaction

_LAST = 2**63 - 1
_OFFSET = select(feeds.c.offset).scalar_subquery()
_OWN_XID = literal_column("pg_current_xact_id()::text::bigint", BigInteger)
_OLDEST_RUNNING = literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger) + _OFFSET
_NEXT = literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger) + _OFFSET
_COLUMNS = ("source", "event", "workflow_id", "at", "principal", "data")
_VALUES = {name: bindparam(name, type_=events.c[name].type) for name in _COLUMNS}
_APPEND = Prepared(
    {
        "sqlite": insert(events).values(xid=0, **_VALUES).inline(),
        "postgresql": insert(events).values(xid=_OWN_XID + _OFFSET, **_VALUES).inline(),
    }
)


class Cursor(NamedTuple):
    """A place in the feed."""

    xid: int
    seq: int

    @classmethod
    def parse(cls, cursor: str) -> Self:
        """Read what `Event.id` says.

        Raises:
            ArgumentError: It is something else.
        """
        xid, _, seq = cursor.partition("-")
        if not (_is_number(xid) and _is_number(seq)):
            shown = f"{cursor[:40]}…" if len(cursor) > 40 else cursor
            raise ArgumentError(f"{shown!r} is not the id of an event", hint="Give the `id` of the last event seen.")
        return cls(int(xid), int(seq))

    def __str__(self) -> str:
        """Write it as `Event.id`."""
        return f"{self.xid}-{self.seq}"


def append(transaction: Transaction, new_events: list[dict[str, Any]], principal: str | None) -> None:
    """Write events, in their order."""
    for event in new_events:
        transaction.run(_APPEND, at=transaction.now, principal=principal, **event)


def read(
    transaction: Transaction, after: str | None, limit: int, source: str | None, workflow_id: str | None
) -> list[Event]:
    """Read the events that come after a cursor."""
    query: Select[Any] = select(events).order_by(events.c.xid, events.c.seq).limit(limit)
    if after is not None:
        query = query.where(tuple_(events.c.xid, events.c.seq) > tuple_(*map(literal, Cursor.parse(after))))
    if transaction.dialect == "postgresql":
        query = query.where(events.c.xid < _OLDEST_RUNNING)
    if source is not None:
        query = query.where(events.c.source == source)
    if workflow_id is not None:
        query = query.where(events.c.workflow_id == workflow_id)
    return [_event(row._mapping) for row in transaction.execute(query)]  # noqa: SLF001 - SQLAlchemy's own public name


def read_back(
    transaction: Transaction,
    before: str | None,
    limit: int,
    *,
    source: str | None,
    event: str | None,
    workflow_id: str | None,
    viewer: Viewer | None,
) -> list[Event]:
    """Read the events that come before a cursor, the newest first."""
    query: Select[Any] = select(events).order_by(events.c.xid.desc(), events.c.seq.desc()).limit(limit)
    if before is not None:
        query = query.where(tuple_(events.c.xid, events.c.seq) < tuple_(*map(literal, Cursor.parse(before))))
    if source is not None:
        query = query.where(events.c.source == source)
    if event is not None:
        query = query.where(events.c.event.startswith(event, autoescape=True))
    if workflow_id is not None:
        query = query.where(events.c.workflow_id == workflow_id)
    if viewer is not None:
        query = query.where(_may_be_seen(viewer))
    return [_event(row._mapping) for row in transaction.execute(query)]  # noqa: SLF001 - SQLAlchemy's own public name


def _may_be_seen(viewer: Viewer) -> ColumnElement[bool]:
    """Leave out the sessions of others, and of other projects."""
    own = select(sessions.c.session_id).where(
        sessions.c.machine == viewer.machine, sessions.c.project == viewer.project
    )
    return or_(events.c.source != CORE, and_(events.c.principal == viewer.principal, events.c.workflow_id.in_(own)))


def end(transaction: Transaction) -> str:
    """Give the cursor after which come the events that readers cannot see yet."""
    if transaction.dialect == "postgresql":
        oldest = transaction.execute(select(_OLDEST_RUNNING)).scalar_one()
        return str(Cursor(oldest - 1, _LAST))
    last = transaction.execute(select(events.c.seq).order_by(events.c.seq.desc()).limit(1)).scalar()
    return str(Cursor(0, last or 0))


def is_restored(transaction: Transaction) -> bool:
    """Say whether there are events of another cluster, whose transaction ids were greater than those to come."""
    return _gap(transaction) > 0


def align(transaction: Transaction) -> None:
    """Let new events come after those that were restored from another cluster."""
    gap = _gap(transaction)
    if gap > 0:
        transaction.execute(update(feeds).values(offset=feeds.c.offset + gap))


def _gap(transaction: Transaction) -> int:
    if transaction.dialect != "postgresql":
        return 0
    newest = transaction.execute(select(events.c.xid).order_by(events.c.xid.desc()).limit(1)).scalar()
    following: int = transaction.execute(select(_NEXT)).scalar_one()
    return 0 if newest is None else newest + 1 - following


def _event(row: Mapping[Any, Any]) -> Event:
    return Event(
        id=str(Cursor(row["xid"], row["seq"])),
        source=row["source"],
        event=row["event"],
        workflow_id=row["workflow_id"],
        at=row["at"],
        principal=row["principal"],
        data=row["data"],
    )


def _is_number(part: str) -> bool:
    # The length comes first: Python refuses to read a number of thousands of digits.
    return len(part) <= len(str(_LAST)) and part.isascii() and part.isdigit() and int(part) <= _LAST
