"""One of the processes whose agents claim and complete items: `python -m bench.claimers ours|raw URL AGENTS`.

RAW runs the statements that our library hands to the driver, recorded, through the driver alone: an agent has a thread
and a connection. `python -m bench.claimers items URL COUNT` makes the items.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any
from unittest.mock import patch

import anyio

import deepwork_sql
from bench.client import PATIENCE
from bench.items import claim, complete, make_items, opened_database
from deepwork_sql import driver
from deepwork_sql.transaction import Transaction

LEASE = 60_000
Values = Mapping[str, Any]


def _in_database(url: str, work: Callable[[deepwork_sql.Database], Awaitable[None]]) -> None:
    async def main() -> None:
        async with opened_database(url) as database:
            await work(database)

    anyio.run(main)


def _await_start() -> float:
    """Wait for the other processes, and return the processor time that was used until then."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    return time.process_time()


def _tell(done: int, before: float) -> None:
    sys.stdout.write(json.dumps({"done": done, "cpu": time.process_time() - before}))


async def _work(database: deepwork_sql.Database, agents: int) -> None:
    done = 0
    before = _await_start()

    async def agent(worker: str) -> None:
        nonlocal done
        take = partial(claim, worker=worker, milliseconds=LEASE)
        while (lease := await database.write(take, lock="bench")) is not None:
            await database.write(partial(complete, worker=worker, lease=lease), lock="bench")
            done += 1

    async with anyio.create_task_group() as tasks:
        for number in range(agents):
            tasks.start_soon(agent, f"{os.getpid()}.{number}")
    _tell(done, before)


@contextmanager
def _recording(statements: list[tuple[str, Values]]) -> Iterator[None]:
    """Keep the statements that our library hands to the driver."""
    real = driver.fetch, driver.execute_many

    def fetch(connection: Any, sql: str, values: Any) -> Any:
        statements.append((sql, values))
        return real[0](connection, sql, values)

    def execute_many(connection: Any, sql: str, values: Any) -> None:
        statements.extend((sql, each) for each in values)
        real[1](connection, sql, values)

    with patch.object(driver, "fetch", fetch), patch.object(driver, "execute_many", execute_many):
        yield


async def _record(database: deepwork_sql.Database, claims: list[Any], completions: list[Any]) -> None:
    """Record a claim and a completion of one item, and take both back."""

    def change(transaction: Transaction) -> None:
        with _recording(claims):
            lease = claim(transaction, "recorded", LEASE)
        assert lease
        with _recording(completions):
            complete(transaction, "recorded", lease)
        raise LookupError

    with suppress(LookupError):
        await database.write(change)


def _replay(url: str, agents: int) -> None:
    claims: list[tuple[str, Values]] = []
    completions: list[tuple[str, Values]] = []
    _in_database(url, lambda database: _record(database, claims, completions))
    before = _await_start()
    counts: list[int] = []

    def agent(worker: str) -> None:
        run = _connected(url)
        values: dict[str, Any] = {"holder": worker, "worker": worker, "workflow_id": worker}
        done = 0
        while _transact(run, claims, values):
            _transact(run, completions, values)
            done += 1
        counts.append(done)

    threads = [threading.Thread(target=agent, args=[f"{os.getpid()}.{number}"]) for number in range(agents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _tell(sum(counts), before)


def _transact(run: Callable[..., Any], statements: list[tuple[str, Values]], values: dict[str, Any]) -> bool:
    """Run recorded statements in a transaction, with the values of this one; False if all items are taken."""
    run(None, None)
    now = time.time_ns() // 1_000_000
    values |= {"now": now, "at": now, "until": now + LEASE}
    for sql, recorded in statements:
        row = run(sql, {key: values.get(key, value) for key, value in recorded.items()})
        if sql.startswith("SELECT item") and row is None:
            run("COMMIT", ())
            return False
        if row is not None:
            values["item" if sql.startswith("SELECT item") else "fence"] = row[0]
    run("COMMIT", ())
    return True


def _connected(url: str) -> Callable[..., Any]:
    """Connect as our library does, and return a function that runs a statement; None begins a transaction."""
    begin = "BEGIN IMMEDIATE"
    if url.startswith("sqlite"):
        import sqlite3

        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=PATIENCE)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
    else:
        import psycopg

        connection, begin = psycopg.connect(url, autocommit=True), "BEGIN"

    def run(sql: str | None, values: Any) -> Any:
        cursor = connection.execute(begin if sql is None else sql, values or ())
        return cursor.fetchone() if cursor.description else None

    return run


def main(what: str, url: str, number: int) -> None:
    """Be one of the processes."""
    if what == "raw":
        _replay(url, number)
    else:
        work = make_items if what == "items" else _work
        _in_database(url, lambda database: work(database, number))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
