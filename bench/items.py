"""Items in a database that agents claim and complete: `bench` measures it, and `tools/torture` disturbs it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql import driver, leases
from deepwork_sql.statement import Statement
from deepwork_sql.transaction import Transaction

TABLES = (
    "CREATE TABLE items (item TEXT PRIMARY KEY, state TEXT NOT NULL)",
    "CREATE INDEX items_open ON items (state, item)",
    "CREATE TABLE completions (item TEXT NOT NULL, fence BIGINT NOT NULL, worker TEXT NOT NULL)",
)
_OPEN = "SELECT item FROM items WHERE state = 'open' ORDER BY item LIMIT 1"
OPEN = Statement({"sqlite": _OPEN, "postgresql": f"{_OPEN} FOR UPDATE SKIP LOCKED"})
CLAIMED = Statement("UPDATE items SET state = 'claimed' WHERE item = :item AND state <> 'done'")
COMPLETED = Statement("INSERT INTO completions VALUES (:item, :fence, :worker)")
DONE = Statement("UPDATE items SET state = 'done' WHERE item = :item")
UNFINISHED = Statement("SELECT item FROM items WHERE state <> 'done' LIMIT 1")


@asynccontextmanager
async def opened_database(url: str) -> AsyncIterator[deepwork_sql.Database]:
    """Open a database as plugins do, which makes the tables of their library."""
    with tempfile.TemporaryDirectory() as root:
        async with open_context("bench", root) as context:
            os.environ["DEEPWORK_DATABASE_URL"] = url  # a variable is all that says which database it is
            database = await deepwork_sql.database(context)
            await database.read(lambda transaction: transaction.now)
            yield database


async def make_items(database: deepwork_sql.Database, count: int) -> None:
    """Make the tables anew, and so many open items; leases of earlier items are not those of these."""

    def change(transaction: Transaction) -> None:
        for table in ("items", "completions"):
            driver.execute(transaction.connection, f"DROP TABLE IF EXISTS {table}")
        for statement in TABLES:
            driver.execute(transaction.connection, statement)
        rows = [{"item": f"item{number:06}.{time.time_ns()}"} for number in range(count)]
        transaction.run_each(Statement("INSERT INTO items VALUES (:item, 'open')"), rows)

    await database.write(change)


def claim(transaction: Transaction, worker: str, milliseconds: int) -> leases.Lease | None:
    """Take an open item; None if all are taken, or another worker is just taking it."""
    row = transaction.row(OPEN)
    return None if row is None else _take(transaction, row.item, worker, milliseconds)


def take_over(transaction: Transaction, worker: str, milliseconds: int) -> leases.Lease | None:
    """Take an item whose holder has gone, if any."""
    expired = leases.expired(transaction, "item", 1)
    return _take(transaction, expired[0].item, worker, milliseconds) if expired else None


def _take(transaction: Transaction, item: str, worker: str, milliseconds: int) -> leases.Lease | None:
    lease = leases.take(transaction, item, holder=worker, milliseconds=milliseconds)
    if isinstance(lease, leases.Held):
        return None
    if not transaction.run(CLAIMED, item=item):  # another worker has completed it since its lease was seen to end
        leases.end(transaction, item, fence=lease.fence)
        return None
    return lease


def complete(transaction: Transaction, worker: str, lease: leases.Lease) -> None:
    """Write down that an item is done, if the lease on it is live."""
    leases.check(transaction, lease.item, lease.fence)
    values = {"item": lease.item, "fence": lease.fence, "worker": worker}
    transaction.run(COMPLETED, **values)
    transaction.run(DONE, item=lease.item)
    leases.end(transaction, lease.item, fence=lease.fence)
    transaction.emit("bench", "item:done", workflow_id=worker, data=values)


def all_are_done(transaction: Transaction) -> bool:
    """True if no item is left to be completed, claimed ones included."""
    return transaction.row(UNFINISHED) is None
