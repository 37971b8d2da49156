"""The event feed: written by the transaction that causes an event (`appending`), read in an order that skips none.

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

from deepwork_sql.events import CORE, LAST, Cursor, Event, Viewer
from deepwork_sql.tables import events, feeds, sessions
from deepwork_sql.transaction import Transaction

_OFFSET = select(feeds.c.offset).scalar_subquery()
_OLDEST_RUNNING = literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger) + _OFFSET
_NEXT = literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger) + _OFFSET


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
    return Event(
        id=str(Cursor(row["xid"], row["seq"])),
        source=row["source"],
        event=row["event"],
        workflow_id=row["workflow_id"],
        at=row["at"],
        principal=row["principal"],
        data=row["data"],
    )
