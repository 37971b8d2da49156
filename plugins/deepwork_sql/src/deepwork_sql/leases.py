"""Leases with fences: who may work on an item, until when, and how a holder that comes too late is recognised.

All functions run in a transaction. Whether a lease has run out is judged by the clock of the database at each
look at it; nothing has to run in the background.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deepwork_sql.errors import LeaseLost
from deepwork_sql.statement import Statement
from deepwork_sql.transaction import Transaction

_ALL = "item, fence, holder, expires_at"
_OF_HOLDER_NOW = "holder = :holder AND expires_at > :now"
_LIVE = "item = :item AND fence = :fence AND holder IS NOT NULL AND expires_at > :now"
# No comparison that an index on the names could serve: few leases are live or have run out, and many have the prefix.
_BEGINS = "substr(item, 1, :length) = :prefix"

_TAKE = Statement(
    "INSERT INTO deepwork_leases (item, fence, holder, expires_at) VALUES (:item, 1, :holder, :until) "
    "ON CONFLICT (item) DO UPDATE SET fence = deepwork_leases.fence + 1, holder = :holder, expires_at = :until "
    "WHERE deepwork_leases.holder IS NULL OR deepwork_leases.expires_at <= :now RETURNING fence"
)
_CHECKED = f"SELECT fence FROM deepwork_leases WHERE {_LIVE}"
_CHECK = Statement({"sqlite": _CHECKED, "postgresql": f"{_CHECKED} FOR UPDATE"})
_RENEW = Statement(f"UPDATE deepwork_leases SET expires_at = :until WHERE {_LIVE}")
_END = Statement(f"UPDATE deepwork_leases SET holder = NULL, expires_at = :now WHERE {_LIVE}")
_AT = Statement(f"SELECT {_ALL} FROM deepwork_leases WHERE item = :item")
_OF_HOLDER = Statement(f"SELECT {_ALL} FROM deepwork_leases WHERE {_OF_HOLDER_NOW} ORDER BY item")
_RENEWED = "UPDATE deepwork_leases SET expires_at = :until"
_RENEW_ALL = Statement(
    {
        "sqlite": f"{_RENEWED} WHERE {_OF_HOLDER_NOW} RETURNING {_ALL}",
        # In one order, or two that renew at once could wait for each other.
        "postgresql": f"WITH held AS (SELECT item AS name FROM deepwork_leases WHERE {_OF_HOLDER_NOW} ORDER BY item "
        f"FOR UPDATE) {_RENEWED} FROM held WHERE item = held.name RETURNING {_ALL}",
    }
)
_LIVE_ON = Statement(
    f"SELECT {_ALL} FROM deepwork_leases WHERE holder IS NOT NULL AND expires_at > :now AND {_BEGINS} ORDER BY item"
)
_EXPIRED = Statement(
    f"SELECT {_ALL} FROM deepwork_leases WHERE holder IS NOT NULL AND expires_at <= :now AND {_BEGINS} "
    "ORDER BY expires_at LIMIT :limit"
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
    """Take a lease, unless there is a live one, also of this holder."""
    now = transaction.now
    taken = transaction.row(_TAKE, item=item, holder=holder, until=now + milliseconds, now=now)
    if taken is not None:
        return Lease(item, taken.fence, holder, now + milliseconds)
    row = transaction.row(_AT, item=item)
    return Held(row.holder, row.expires_at)


def renew(transaction: Transaction, item: str, *, fence: int, milliseconds: int) -> int:
    """Let a lease last so long from now, and return until when.

    Raises:
        LeaseLost: It has run out, or another holder has it.
    """
    until = transaction.now + milliseconds
    if not transaction.run(_RENEW, item=item, fence=fence, now=transaction.now, until=until):
        raise _lost(transaction, item, fence)
    return until


def check(transaction: Transaction, item: str, fence: int) -> None:
    """Check that a lease is live, and stays this holder's until the end of the transaction.

    Raises:
        LeaseLost: It has run out, or another holder has it.
    """
    if transaction.row(_CHECK, item=item, fence=fence, now=transaction.now) is None:
        raise _lost(transaction, item, fence)


def end(transaction: Transaction, item: str, *, fence: int) -> None:
    """End a lease. The fence stays, so that the next lease has a greater one.

    Raises:
        LeaseLost: It has run out, or another holder has it.
    """
    if not transaction.run(_END, item=item, fence=fence, now=transaction.now):
        raise _lost(transaction, item, fence)


def holder_of(transaction: Transaction, item: str) -> Lease | None:
    """Return the live lease on an item."""
    row = transaction.row(_AT, item=item)
    return None if row is None or row.holder is None or row.expires_at <= transaction.now else _lease(row)


def of_holder(transaction: Transaction, holder: str) -> list[Lease]:
    """List the live leases of a holder."""
    return [_lease(row) for row in transaction.rows(_OF_HOLDER, holder=holder, now=transaction.now)]


def live(transaction: Transaction, prefix: str) -> list[Lease]:
    """List the live leases of all holders on items whose names begin with the prefix."""
    begins = {"prefix": prefix, "length": len(prefix)}
    return [_lease(row) for row in transaction.rows(_LIVE_ON, now=transaction.now, **begins)]


def renew_all(transaction: Transaction, holder: str, milliseconds: int) -> list[Lease]:
    """Let all live leases of a holder last so long from now, and list them."""
    until = transaction.now + milliseconds
    renewed = transaction.rows(_RENEW_ALL, holder=holder, now=transaction.now, until=until)
    return sorted(map(_lease, renewed), key=lambda lease: lease.item)


def expired(transaction: Transaction, prefix: str, limit: int) -> list[Lease]:
    """List leases that have run out and were not taken since, on items whose names begin with the prefix.

    Another holder may take an item and end its work before this transaction takes it: look at the item after `take`.
    """
    begins = {"prefix": prefix, "length": len(prefix)}
    return [_lease(row) for row in transaction.rows(_EXPIRED, now=transaction.now, limit=limit, **begins)]


def _lost(transaction: Transaction, item: str, fence: int) -> LeaseLost:
    row = transaction.row(_AT, item=item)
    if row is None or row.fence < fence:
        return LeaseLost(f"there is no lease {fence} on {item!r}")
    if row.fence > fence:
        return LeaseLost(f"the lease on {item!r} ran out, and another holder has taken it since")
    reason = "was given back" if row.holder is None else f"ran out {transaction.now - row.expires_at} ms ago"
    return LeaseLost(f"the lease on {item!r} {reason}")


def _lease(row: Any) -> Lease:
    return Lease(row.item, row.fence, row.holder, row.expires_at)
