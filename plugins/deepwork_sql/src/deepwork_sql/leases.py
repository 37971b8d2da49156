"""Leases with fences: who may work on an item, until when, and how a holder that comes too late is recognised.

All functions run in a transaction. Whether a lease has run out is judged by the clock of the database when somebody
looks at it; nothing has to run in the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from deepwork_sql.errors import LeaseLost
from deepwork_sql.tables import leases
from deepwork_sql.transaction import Transaction


def _taking(insert: Any) -> Any:
    """Make the statement that takes a lease which nobody has."""
    fresh: dict[str, Any] = {name: bindparam(f"{name}_") for name in ("item", "holder", "expires_at")}
    return (
        insert(leases)
        .values(fence=1, **fresh)
        .on_conflict_do_update(
            index_elements=[leases.c.item],
            set_={"fence": leases.c.fence + 1, "holder": fresh["holder"], "expires_at": fresh["expires_at"]},
            where=or_(leases.c.holder.is_(None), leases.c.expires_at <= bindparam("now_")),
        )
        .returning(leases.c.fence)
    )


# The statements are made once: making them takes SQLAlchemy longer than running them.
_TAKE = {"sqlite": _taking(sqlite.insert), "postgresql": _taking(postgresql.insert)}
_LIVE = and_(
    leases.c.item == bindparam("item_"),
    leases.c.fence == bindparam("fence_"),
    leases.c.holder.is_not(None),
    leases.c.expires_at > bindparam("now_"),
)
_CHECK = select(leases.c.fence).where(_LIVE).with_for_update()
_RENEW = update(leases).where(_LIVE).values(expires_at=bindparam("until_"))
_END = update(leases).where(_LIVE).values(holder=None, expires_at=bindparam("now_"))


@dataclass(frozen=True)
class Lease:
    """A lease on an item.

    Attributes:
        fence: Grows with every lease on this item, and never begins again.
        expires_at: In milliseconds by the clock of the database.
    """

    item: str
    fence: int
    holder: str
    expires_at: int


@dataclass(frozen=True)
class Held:
    """Somebody else's lease, which has not run out."""

    holder: str
    expires_at: int


def take(transaction: Transaction, item: str, *, holder: str, milliseconds: int) -> Lease | Held:
    """Take a lease, unless somebody has a live one, this holder included."""
    now = transaction.now
    values = {"item_": item, "holder_": holder, "expires_at_": now + milliseconds, "now_": now}
    fence = transaction.execute(_TAKE[transaction.dialect], values).scalar()
    if fence is not None:
        return Lease(item, fence, holder, now + milliseconds)
    row = transaction.execute(select(leases.c.holder, leases.c.expires_at).where(leases.c.item == item)).one()
    return Held(row.holder, row.expires_at)


def renew(transaction: Transaction, item: str, *, fence: int, milliseconds: int) -> int:
    """Let a lease last so long from now, and say until when.

    Raises:
        LeaseLost: It has run out, or somebody else has it.
    """
    expires_at = transaction.now + milliseconds
    renewed = transaction.execute(_RENEW, {**_live(transaction, item, fence), "until_": expires_at})
    if not renewed.rowcount:
        raise _lost(transaction, item, fence)
    return expires_at


def check(transaction: Transaction, item: str, fence: int) -> None:
    """Make sure that a lease is live, and stays this holder's until the end of the transaction.

    Raises:
        LeaseLost: It has run out, or somebody else has it.
    """
    if transaction.execute(_CHECK, _live(transaction, item, fence)).first() is None:
        raise _lost(transaction, item, fence)


def end(transaction: Transaction, item: str, *, fence: int) -> None:
    """Give a lease back. The fence stays, so that the next lease has a greater one.

    Raises:
        LeaseLost: It has run out, or somebody else has it.
    """
    ended = transaction.execute(_END, _live(transaction, item, fence))
    if not ended.rowcount:
        raise _lost(transaction, item, fence)


def holder_of(transaction: Transaction, item: str) -> Lease | None:
    """Give the live lease on an item."""
    query = select(leases).where(leases.c.item == item, leases.c.holder.is_not(None))
    row = transaction.execute(query.where(leases.c.expires_at > transaction.now)).first()
    return _lease(row) if row else None


def of_holder(transaction: Transaction, holder: str) -> list[Lease]:
    """List the live leases of a holder."""
    query = select(leases).where(leases.c.holder == holder, leases.c.expires_at > transaction.now)
    return [_lease(row) for row in transaction.execute(query.order_by(leases.c.item))]


def renew_all(transaction: Transaction, holder: str, milliseconds: int) -> list[Lease]:
    """Let all live leases of a holder last so long from now, and list them."""
    live = and_(leases.c.holder == holder, leases.c.expires_at > transaction.now)
    if transaction.dialect == "postgresql":  # in one order, or two that renew at once could wait for each other
        transaction.execute(select(leases.c.item).where(live).order_by(leases.c.item).with_for_update())
    transaction.execute(update(leases).where(live).values(expires_at=transaction.now + milliseconds))
    return of_holder(transaction, holder)


def expired(transaction: Transaction, prefix: str, limit: int) -> list[Lease]:
    """List leases that have run out and that nobody has taken since, on items whose names begin with the prefix.

    Another holder may take an item and end its work before this transaction takes it: look at the item after `take`.
    """
    begins = leases.c.item.startswith(prefix, autoescape=True)
    query = select(leases).where(begins, leases.c.holder.is_not(None), leases.c.expires_at <= transaction.now)
    return [_lease(row) for row in transaction.execute(query.order_by(leases.c.expires_at).limit(limit))]


def _live(transaction: Transaction, item: str, fence: int) -> dict[str, Any]:
    """Give the values of `_LIVE`."""
    return {"item_": item, "fence_": fence, "now_": transaction.now}


def _lost(transaction: Transaction, item: str, fence: int) -> LeaseLost:
    row = transaction.execute(select(leases).where(leases.c.item == item)).first()
    if row is None or row.fence < fence:
        return LeaseLost(f"there is no lease {fence} on {item!r}")
    if row.fence > fence:
        return LeaseLost(f"the lease on {item!r} ran out, and somebody else has taken it since")
    reason = "was given back" if row.holder is None else f"ran out {transaction.now - row.expires_at} ms ago"
    return LeaseLost(f"the lease on {item!r} {reason}")


def _lease(row: Any) -> Lease:
    return Lease(row.item, row.fence, row.holder, row.expires_at)
