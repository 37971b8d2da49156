"""The event feed: written by the transaction that causes an event (`transaction`), read in an order that skips none.

Transactions of PostgreSQL commit in another order than they get sequence numbers in, so a reader that remembers the
last number would miss events. The cursor is the id of the transaction and the number, and only transactions are read
that are older than all running ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    and_,
    literal,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)

from deepwork_sql.events import CORE, LAST, Cursor, Event, EventFilter, Viewer
from deepwork_sql.tables import events, feeds, sessions
from deepwork_sql.transaction import Transaction

_order = tuple_(events.c.xid, events.c.seq)
_OFFSET = select(feeds.c.offset).scalar_subquery()
_OLDEST_RUNNING = literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger) + _OFFSET
_NEXT = literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger) + _OFFSET


def read(transaction: Transaction, after: str | None, limit: int, event_filter: EventFilter) -> list[Event]:
    """Read the events that come after a cursor."""
    query = _selected(event_filter).order_by(events.c.xid, events.c.seq)
    if after is not None:
        query = query.where(_order > _place(after))
    if transaction.dialect == "postgresql":
        query = query.where(events.c.xid < _OLDEST_RUNNING)
    return _events(transaction, query.limit(limit))


def read_back(transaction: Transaction, before: str | None, limit: int, event_filter: EventFilter) -> list[Event]:
    """Read the events that come before a cursor, the newest first."""
    query = _selected(event_filter).order_by(events.c.xid.desc(), events.c.seq.desc())
    if before is not None:
        query = query.where(_order < _place(before))
    return _events(transaction, query.limit(limit))


def _selected(event_filter: EventFilter) -> Select[Any]:
    query: Select[Any] = select(events)
    if event_filter.source is not None:
        query = query.where(events.c.source == event_filter.source)
    if event_filter.event is not None:
        query = query.where(events.c.event.startswith(event_filter.event, autoescape=True))
    if event_filter.workflow_id is not None:
        query = query.where(events.c.workflow_id == event_filter.workflow_id)
    return query if event_filter.viewer is None else query.where(_may_be_seen(event_filter.viewer))


def _place(cursor: str) -> ColumnElement[Any]:
    return tuple_(*map(literal, Cursor.parse(cursor)))


def _events(transaction: Transaction, query: Select[Any]) -> list[Event]:
    return [_event(row._mapping) for row in transaction.execute(query)]  # noqa: SLF001 - SQLAlchemy's own public name


def _may_be_seen(viewer: Viewer) -> ColumnElement[bool]:
    """Leave out the sessions of others, and of other projects."""
    own = select(sessions.c.session_id).where(
        sessions.c.machine == viewer.machine, sessions.c.project == viewer.project
    )
    return or_(events.c.source != CORE, and_(events.c.principal == viewer.principal, events.c.workflow_id.in_(own)))


def end(transaction: Transaction) -> str:
    """Return the cursor after which come the events that readers cannot see yet."""
    if transaction.dialect == "postgresql":
        oldest = transaction.execute(select(_OLDEST_RUNNING)).scalar_one()
        return str(Cursor(oldest - 1, LAST))
    last = transaction.execute(select(events.c.seq).order_by(events.c.seq.desc()).limit(1)).scalar()
    return str(Cursor(0, last or 0))


def is_restored(transaction: Transaction) -> bool:
    """True if there are events of another cluster, whose transaction ids were greater than those to come."""
    return _gap(transaction) > 0


def align(transaction: Transaction) -> None:
    """Let new events come after events that were restored from another cluster."""
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
    names = ("source", "event", "workflow_id", "at", "principal", "data")
    return Event(id=str(Cursor(row["xid"], row["seq"])), **{name: row[name] for name in names})
