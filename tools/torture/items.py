"""Items in a database: processes of agents claim and complete them while some are late, and some are killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
from report import Report
from stores import Database, database_option, opened_store

if TYPE_CHECKING:
    import deepwork_sql
    from deepwork_sql.leases import Lease

LEASE = 2_000
KILLED_EVERY, RESTARTED_EVERY = 2.0, 5.0


async def next_lease(database: deepwork_sql.Database, worker: str) -> Lease | None:
    """Wait for an item that is open or whose holder has gone, and claim it; None if all are done."""
    from bench.items import all_are_done, claim, take_over

    from deepwork_sql.errors import DatabaseError

    while True:
        try:
            lease = await database.write(lambda tx: claim(tx, worker, LEASE) or take_over(tx, worker, LEASE))
        except DatabaseError as error:
            if "not said whether the change was made" not in str(error):
                raise
            continue  # a restart came between; if it was made, its lease ends, and the item is open again
        if lease is not None:
            return lease
        if await database.read(all_are_done):
            return None
        await anyio.sleep(0.1)


async def work(database: deepwork_sql.Database, name: str, agents: int, late: float) -> dict[str, int]:
    """Claim and complete until nothing is left, and print each completion that was acknowledged.

    Returns:
        How many completions after the end of their leases were refused, and accepted.
    """
    from bench.items import complete

    from deepwork_sql import LeaseLost

    stale = Counter[str]()

    async def agent(worker: str) -> None:
        while lease := await next_lease(database, worker):
            is_late = random.random() < late
            if is_late:
                await anyio.sleep(LEASE / 1000 + 0.2)
            try:
                await database.write(partial(complete, worker=worker, lease=lease))
            except LeaseLost:
                stale["refused"] += 1
                continue
            stale["accepted"] += is_late
            print(f"done {lease.item} {lease.fence}", flush=True)

    async with anyio.create_task_group() as tasks:
        for number in range(agents):
            tasks.start_soon(agent, f"{name}.{number}")
    return dict(stale)


def start_worker(url: str, kind: str, name: str, *numbers: float) -> subprocess.Popen[str]:
    """Start this program as one of the processes that work on a database."""
    command = [sys.executable, str(Path(__file__).parent), "worker", url, kind, name, *map(str, numbers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


class Reader(threading.Thread):
    """Collects the acknowledgements of a worker; a line that was cut off does not count."""

    def __init__(self, worker: subprocess.Popen[str]) -> None:
        super().__init__()
        self.worker = worker
        self.acknowledged: list[tuple[str, int]] = []
        self.stale = Counter[str]()
        self.start()

    def run(self) -> None:
        """Read until the worker ends."""
        assert self.worker.stdout
        for line in self.worker.stdout:
            if line.startswith("{"):
                self.stale.update(json.loads(line))
            elif line.endswith("\n"):
                _, item, fence = line.split()
                self.acknowledged.append((item, int(fence)))
        self.worker.wait()


@click.command()
@database_option
@click.option("--count", default=4000, show_default=True)
@click.option("--processes", default=4, show_default=True)
@click.option("--agents", default=8, show_default=True, help="Agents of each process.")
@click.option("--late", default=0.01, show_default=True, help="So many of the leases are held too long.")
@click.option("--deaths", is_flag=True, help="Kill a process every 2 s, and restart PostgreSQL every 5 s.")
def items(store: str, count: int, processes: int, agents: int, late: float, *, deaths: bool) -> None:
    """Claim and complete items of a database: each is done once."""
    what = "workers killed, PostgreSQL restarted" if deaths else "nobody dies"
    report = Report(f"items: {count:,} in {store}, {processes} processes x {agents} agents, {late:.1%} late, {what}")
    with tempfile.TemporaryDirectory(prefix="deepwork-items-") as folder, opened_store(store, Path(folder)) as database:
        from bench.items import make_items

        assert isinstance(database, Database)
        database.run(make_items, count)
        started = (start_worker(database.url, "items", f"w{number}", agents, late) for number in range(processes))
        readers = [Reader(worker) for worker in started]
        killed = _until_all_is_done(database, readers, agents, late, report) if deaths else []
        for reader in readers:
            reader.join()
        stored = Counter(database.rows("SELECT item, fence FROM completions"))
        events = len(database.run(_all_events))
    stale = sum((reader.stale for reader in readers), Counter[str]())
    acknowledged = [pair for reader in readers for pair in reader.acknowledged]
    twice = [item for item, times in Counter(item for item, _ in stored.elements()).items() if times > 1]
    codes = [reader.worker.returncode for reader in readers if reader.worker not in killed]
    report.fact("completions acknowledged", len(acknowledged))
    report.fact("late completions refused", stale["refused"])
    report.promise("items done", stored.total(), count)
    report.promise("items done twice", twice)
    report.promise("acknowledged completions lost", [str(pair) for pair in acknowledged if pair not in stored])
    report.promise("late completions accepted", stale["accepted"])
    report.promise("events", events, count)
    report.promise("processes that failed", sum(map(bool, codes)))
    report.finish()


def _until_all_is_done(
    database: Database, readers: list[Reader], agents: int, late: float, report: Report
) -> list[subprocess.Popen[str]]:
    """Kill a worker now and then, and restart PostgreSQL as if it had crashed; return the workers that were killed."""
    killed: list[subprocess.Popen[str]] = []
    restarts, killed_at, restarted_at = 0, time.monotonic(), time.monotonic()
    while any(reader.is_alive() for reader in readers):
        time.sleep(0.05)
        now = time.monotonic()
        alive = [reader for reader in readers if reader.is_alive()]
        if not all(reader.acknowledged for reader in alive):
            killed_at = now  # on a slow machine, processes would be killed before they have begun
            continue
        if alive and now >= killed_at + KILLED_EVERY:
            alive[0].worker.kill()
            killed.append(alive[0].worker)
            readers.append(Reader(start_worker(database.url, "items", f"k{len(killed)}", agents, late)))
            killed_at = now
        if database.cluster and now >= restarted_at + RESTARTED_EVERY:
            database.cluster.restart("immediate")
            restarts += 1
            restarted_at = time.monotonic()
    report.fact("processes killed", len(killed))
    report.fact("restarts of PostgreSQL", restarts)
    return killed


async def _all_events(database: deepwork_sql.Database) -> list[Any]:
    events: list[Any] = []
    while page := await database.feed(events[-1].id if events else None):
        events += page
    return events
