"""Agents that claim items and complete them, through the library and past it."""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections import Counter
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from databases import connect_raw
from sqlalchemy import text

from deepwork_sql import Database, LeaseLost, Transaction, leases
from deepwork_sql.prepared import Prepared

TABLES = (
    "CREATE TABLE items (item TEXT PRIMARY KEY, state TEXT NOT NULL)",
    "CREATE INDEX items_open ON items (state, item)",
    "CREATE TABLE completions (item TEXT NOT NULL, fence BIGINT NOT NULL, worker TEXT NOT NULL)",
)
LEASE = 60_000
OPEN_ITEM = "SELECT item FROM items WHERE state = 'open' ORDER BY item LIMIT 1"
# Statements are made once, as programs do.
OPEN = Prepared({"sqlite": text(OPEN_ITEM), "postgresql": text(f"{OPEN_ITEM} FOR UPDATE SKIP LOCKED")})
CLAIMED = Prepared(text("UPDATE items SET state = 'claimed' WHERE item = :item AND state <> 'done'"))
COMPLETED = Prepared(text("INSERT INTO completions VALUES (:item, :fence, :worker)"))
DONE = Prepared(text("UPDATE items SET state = 'done' WHERE item = :item"))


def make_items(url: str, count: int) -> None:
    connection = connect_raw(url)
    for statement in TABLES:
        connection.execute(statement)
    mark = "?" if url.startswith("sqlite") else "%s"
    if url.startswith("sqlite"):
        connection.execute("BEGIN IMMEDIATE")
    cursor = connection.cursor()
    cursor.executemany(f"INSERT INTO items VALUES ({mark}, 'open')", [(f"item{n:06}",) for n in range(count)])
    connection.commit()
    connection.close()


def claim(tx: Transaction, worker: str, lease: int) -> leases.Lease | None:
    """Take an open item, or one whose holder has gone."""
    row = tx.row(OPEN) or next(iter(leases.expired(tx, "item", 1)), None)
    if row is None:
        return None
    item = row[0] if isinstance(row, tuple) else row.item
    taken = leases.take(tx, item, holder=worker, milliseconds=lease)
    if isinstance(taken, leases.Held):
        return None
    if not tx.run(CLAIMED, item=item):  # another worker has completed it since its lease was seen to end
        leases.end(tx, item, fence=taken.fence)
        return None
    return taken


def complete(tx: Transaction, worker: str, lease: leases.Lease) -> None:
    leases.check(tx, lease.item, lease.fence)
    values = {"item": lease.item, "fence": lease.fence, "worker": worker}
    tx.run(COMPLETED, **values)
    tx.run(DONE, item=lease.item)
    leases.end(tx, lease.item, fence=lease.fence)
    tx.emit("torture", "item:done", workflow_id=worker, data=values)


def wait_for_all() -> None:
    """Report that this process is ready, and wait until it may begin."""
    print("ready", flush=True)
    sys.stdin.readline()


async def work(
    database: Database, name: str, agents: int, lease: int, pause_share: float, *, wait: bool
) -> dict[str, Any]:
    """Claim and complete until nothing is left, and print each completion that was acknowledged."""
    claims: list[float] = []
    stale = Counter[str]()
    if wait:
        await to_thread.run_sync(wait_for_all)
    begin_at = time.time()

    async def agent(number: int) -> None:
        worker = f"{name}.{number}"
        while True:
            begin = time.perf_counter()
            taken = await database.write(partial(claim, worker=worker, lease=lease))
            if taken is None:
                left = await database.read(
                    lambda tx: tx.execute(text("SELECT 1 FROM items WHERE state <> 'done' LIMIT 1")).scalar()
                )
                if left is None:
                    return
                await anyio.sleep(0.1)
                continue
            claims.append(time.perf_counter() - begin)
            is_paused = random.random() < pause_share
            if is_paused:
                await anyio.sleep(lease / 1000 + 0.2)
            try:
                await database.write(partial(complete, worker=worker, lease=taken))
            except LeaseLost:
                stale["refused"] += 1
                continue
            stale["accepted"] += is_paused
            print(f"done {taken.item} {taken.fence}", flush=True)

    async with anyio.create_task_group() as tasks:
        for number in range(agents):
            tasks.start_soon(agent, number)
    return {"claims": claims, "stale": dict(stale), "begin": begin_at, "end": time.time()}


def work_raw(url: str, name: str, agents: int) -> dict[str, Any]:
    """The same statements, each agent with a connection and a thread of its own."""
    claims: list[float] = []
    wait_for_all()
    begin_at = time.time()
    threads = [threading.Thread(target=_raw_agent, args=(url, f"{name}.{n}", claims)) for n in range(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"claims": claims, "stale": {}, "begin": begin_at, "end": time.time()}


def _raw_agent(url: str, worker: str, claims: list[float]) -> None:
    is_sqlite = url.startswith("sqlite")
    connection = connect_raw(url)
    skip, xid = ("", "0") if is_sqlite else (" FOR UPDATE SKIP LOCKED", "pg_current_xact_id()::text::bigint")
    lock = "" if is_sqlite else " FOR UPDATE"

    def execute(statement: str, *values: Any) -> Any:
        return connection.execute(statement if is_sqlite else statement.replace("?", "%s"), values)

    while True:
        begin = time.perf_counter()
        if is_sqlite:
            execute("BEGIN IMMEDIATE")
        now = time.time_ns() // 1_000_000
        row = execute(OPEN_ITEM + skip).fetchone()
        if row is None:
            connection.rollback()
            return
        take = (
            "INSERT INTO deepwork_leases (item, fence, holder, expires_at) VALUES (?, 1, ?, ?) "
            "ON CONFLICT (item) DO UPDATE SET fence = deepwork_leases.fence + 1, holder = excluded.holder, "
            "expires_at = excluded.expires_at "
            "WHERE deepwork_leases.holder IS NULL OR deepwork_leases.expires_at <= ? RETURNING fence"
        )
        fence = execute(take, row[0], worker, now + LEASE, now).fetchone()[0]
        execute("UPDATE items SET state = 'claimed' WHERE item = ?", row[0])
        connection.commit()
        claims.append(time.perf_counter() - begin)
        if is_sqlite:
            execute("BEGIN IMMEDIATE")
        held = "item = ? AND fence = ? AND holder IS NOT NULL AND expires_at > ?"
        execute(f"SELECT fence FROM deepwork_leases WHERE {held}{lock}", row[0], fence, now).fetchone()
        execute("INSERT INTO completions VALUES (?, ?, ?)", row[0], fence, worker)
        execute("UPDATE items SET state = 'done' WHERE item = ?", row[0])
        execute(f"UPDATE deepwork_leases SET holder = NULL, expires_at = ? WHERE {held}", now, row[0], fence, now)
        event = (
            "INSERT INTO deepwork_events (xid, source, event, workflow_id, at, principal, data) "
            f"VALUES ({xid}, 'torture', 'item:done', ?, ?, NULL, ?)"
        )
        execute(event, worker, now, json.dumps({"item": row[0], "fence": fence, "worker": worker}))
        connection.commit()
