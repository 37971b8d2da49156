"""Leases with fences: who may work on an item, until when, and how a holder that comes too late is recognised.

All functions run in a transaction. Whether a lease has run out is judged by the clock of the database when somebody
looks at it; nothing has to run in the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Integer, and_, bindparam, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from deepwork_sql.errors import LeaseLost
from deepwork_sql.prepared import Prepared
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


_TAKE = Prepared({"sqlite": _taking(sqlite.insert), "postgresql": _taking(postgresql.insert)})
_NOW: BindParameter[int] = bindparam("now_")
_UNTIL: BindParameter[int] = bindparam("until_")
_ITEM = leases.c.item == bindparam("item_")
_HOLDER = and_(leases.c.holder == bindparam("holder_"), leases.c.expires_at > _NOW)
_LIVE = and_(_ITEM, leases.c.fence == bindparam("fence_"), leases.c.holder.is_not(None), leases.c.expires_at > _NOW)
_CHECK = Prepared(select(leases.c.fence).where(_LIVE).with_for_update())
_RENEW = Prepared(update(leases).where(_LIVE).values(expires_at=_UNTIL))
_END = Prepared(update(leases).where(_LIVE).values(holder=None, expires_at=_NOW))
_AT = Prepared(select(leases).where(_ITEM))
_OF_HOLDER = Prepared(select(leases).where(_HOLDER).order_by(leases.c.item))
# In one order, or two that renew at once could wait for each other.
_HELD = select(leases.c.item).where(_HOLDER).order_by(leases.c.item).with_for_update().cte("held")
_RENEWED = update(leases).values(expires_at=_UNTIL).returning(leases)
_RENEW_ALL = Prepared(
    {
        "sqlite": _RENEWED.where(_HOLDER),
        "postgresql": _RENEWED.where(leases.c.item == _HELD.c.item),
    }
)
# No comparison that an index on the names could serve: few leases are live or have run out, and many have the prefix.
_BEGINS = func.substr(leases.c.item, 1, bindparam("length_", type_=Integer)) == bindparam("prefix_")
_LIVE_ON = Prepared(
    select(leases).where(leases.c.holder.is_not(None), leases.c.expires_at > _NOW, _BEGINS).order_by(leases.c.item)
)
_EXPIRED = Prepared(
    select(leases)
    .where(leases.c.holder.is_not(None), leases.c.expires_at <= _NOW, _BEGINS)
    .order_by(leases.c.expires_at)
    .limit(bindparam("limit_", type_=Integer))
)


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
    taken = transaction.row(_TAKE, item_=item, holder_=holder, expires_at_=now + milliseconds, now_=now)
    if taken is not None:
        return Lease(item, taken.fence, holder, now + milliseconds)
    row = transaction.row(_AT, item_=item)
    return Held(row.holder, row.expires_at)


def renew(transaction: Transaction, item: str, *, fence: int, milliseconds: int) -> int:
    """Let a lease last so long from now, and say until when.

    Raises:
        LeaseLost: It has run out, or somebody else has it.
    """
    until = transaction.now + milliseconds
    if not transaction.run(_RENEW, item_=item, fence_=fence, now_=transaction.now, until_=until):
        raise _lost(transaction, item, fence)
    return until


def check(transaction: Transaction, item: str, fence: int) -> None:
    """Make sure that a lease is live, and stays this holder's until the end of the transaction.

    Raises:
        LeaseLost: It has run out, or somebody else has it.
    """
    if transaction.row(_CHECK, item_=item, fence_=fence, now_=transaction.now) is None:
        raise _lost(transaction, item, fence)


def end(transaction: Transaction, item: str, *, fence: int) -> None:
    """Give a lease back. The fence stays, so that the next lease has a greater one.

    Raises:
        LeaseLost: It has run out, or somebody else has it.
    """
    if not transaction.run(_END, item_=item, fence_=fence, now_=transaction.now):
        raise _lost(transaction, item, fence)


def holder_of(transaction: Transaction, item: str) -> Lease | None:
    """Give the live lease on an item."""
    row = transaction.row(_AT, item_=item)
    return None if row is None or row.holder is None or row.expires_at <= transaction.now else _lease(row)


def of_holder(transaction: Transaction, holder: str) -> list[Lease]:
    """List the live leases of a holder."""
    return [_lease(row) for row in transaction.rows(_OF_HOLDER, holder_=holder, now_=transaction.now)]


def live(transaction: Transaction, prefix: str) -> list[Lease]:
    """List the live leases on items whose names begin with the prefix, whoever holds them."""
    begins = {"prefix_": prefix, "length_": len(prefix)}
    return [_lease(row) for row in transaction.rows(_LIVE_ON, now_=transaction.now, **begins)]


def renew_all(transaction: Transaction, holder: str, milliseconds: int) -> list[Lease]:
    """Let all live leases of a holder last so long from now, and list them."""
    until = transaction.now + milliseconds
    renewed = transaction.rows(_RENEW_ALL, holder_=holder, now_=transaction.now, until_=until)
    return sorted(map(_lease, renewed), key=lambda lease: lease.item)


def expired(transaction: Transaction, prefix: str, limit: int) -> list[Lease]:
    """List leases that have run out and that nobody has taken since, on items whose names begin with the prefix.

    Another holder may take an item and end its work before this transaction takes it: look at the item after `take`.
    """
    begins = {"prefix_": prefix, "length_": len(prefix)}
    return [_lease(row) for row in transaction.rows(_EXPIRED, now_=transaction.now, limit_=limit, **begins)]


def _lost(transaction: Transaction, item: str, fence: int) -> LeaseLost:
    row = transaction.row(_AT, item_=item)
    if row is None or row.fence < fence:
        return LeaseLost(f"there is no lease {fence} on {item!r}")
    if row.fence > fence:
        return LeaseLost(f"the lease on {item!r} ran out, and somebody else has taken it since")
    reason = "was given back" if row.holder is None else f"ran out {transaction.now - row.expires_at} ms ago"
    return LeaseLost(f"the lease on {item!r} {reason}")


def _lease(row: Any) -> Lease:
    return Lease(row.item, row.fence, row.holder, row.expires_at)
