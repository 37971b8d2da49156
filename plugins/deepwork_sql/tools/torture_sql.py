"""Measure and torture the database: `python plugins/deepwork_sql/tools/torture_sql.py --help`.

RAW is the same statements through sqlite3 and psycopg, with the same durability, in the same run.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click
import psycopg
from anyio import to_thread
from sqlalchemy import text

import deepwork_sql
from deepwork.api import HistoryEntry, Session, open_context
from deepwork.testing import a_session
from deepwork.testing.samples import at
from deepwork_sql import Database, LeaseLost, Transaction, leases
from deepwork_sql.cluster import Cluster, running_cluster
from deepwork_sql.prepared import Prepared
from deepwork_sql.session_rows import SessionRows

ENGINES = ("sqlite", "postgresql")
SAVES, ENTRIES = 400, 20
TABLES = (
    "CREATE TABLE items (item TEXT PRIMARY KEY, state TEXT NOT NULL)",
    "CREATE INDEX items_open ON items (state, item)",
    "CREATE TABLE completions (item TEXT NOT NULL, fence BIGINT NOT NULL, worker TEXT NOT NULL)",
)
LEASE, SHORT_LEASE = 60_000, 2_000
OPEN_ITEM = "SELECT item FROM items WHERE state = 'open' ORDER BY item LIMIT 1"
# Statements are made once, as programs do.
OPEN = Prepared({"sqlite": text(OPEN_ITEM), "postgresql": text(f"{OPEN_ITEM} FOR UPDATE SKIP LOCKED")})
CLAIMED = Prepared(text("UPDATE items SET state = 'claimed' WHERE item = :item AND state <> 'done'"))
COMPLETED = Prepared(text("INSERT INTO completions VALUES (:item, :fence, :worker)"))
DONE = Prepared(text("UPDATE items SET state = 'done' WHERE item = :item"))


# Databases


@contextmanager
def database_of(engine: str, folder: Path) -> Iterator[tuple[str, Cluster | None]]:
    """Make a database, and give its URL and its cluster."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/{random.getrandbits(32)}.db", None
        return
    with running_cluster() as cluster, cluster.new_database() as url:
        yield url, cluster


@contextmanager
def opened(url: str) -> Iterator[Callable[..., Any]]:
    """Give a function that runs an async one with the open database."""
    os.environ["DEEPWORK_DATABASE_URL"] = url

    def run(function: Callable[..., Any], *arguments: Any) -> Any:
        async def main() -> Any:
            with tempfile.TemporaryDirectory() as root:
                async with open_context("torture", root) as context:
                    return await function(await deepwork_sql.database(context), *arguments)

        return anyio.run(main)

    yield run


def rows_of(url: str, query: str) -> list[Any]:
    """Read past the library."""
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///")).execute(query).fetchall()
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def connect_raw(url: str) -> Any:
    """Connect as RAW does."""
    if not url.startswith("sqlite"):
        return psycopg.connect(url)
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


def judged(reached: bool) -> dict[str, str]:  # noqa: FBT001 - it is the only argument
    """A goal that is missed is shown as missed; only wrong results are failures."""
    return {"goal": "reached" if reached else "missed"}


def say(engine: str, figure: str, **facts: Any) -> None:
    shown = "  ".join(
        f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={value}" for name, value in facts.items()
    )
    print(f"{engine:10}  {figure:10}  {shown}", flush=True)


# One session is saved again and again


def a_saved_session(number: int) -> Session:
    history = [HistoryEntry(at=at(0), kind="step_begun", detail={"n": n}) for n in range(1 + number % ENTRIES)]
    return a_session("s1", history=history, goal="a goal " * 20)


async def save_ours(database: Database) -> list[float]:
    rows, revision, times = SessionRows("m", "ours"), None, []
    for number in range(SAVES):
        session = a_saved_session(number)
        begin = time.perf_counter()
        revision = await database.write(lambda tx, s=session, r=revision: rows.save(tx, s, r))
        times.append(time.perf_counter() - begin)
    return times


def save_raw(url: str) -> list[float]:
    """The statements of a save, and the same work to make what they store."""
    is_sqlite = url.startswith("sqlite")
    connection, mark = connect_raw(url), "?" if is_sqlite else "%s"
    key = "machine = 'm' AND project = 'raw' AND session_id = 's1' AND archived = " + ("0" if is_sqlite else "false")
    lock, xid = ("", "0") if is_sqlite else (" FOR UPDATE", "pg_current_xact_id()::text::bigint")
    update = (
        f"UPDATE deepwork_sessions SET revision={mark}, schema_version=1, status='active', updated_at='x', "
        f"history_length={mark}, summary={mark}, document={mark} WHERE {key} AND revision={mark}"
    )
    event = (
        "INSERT INTO deepwork_events (xid, source, event, workflow_id, at, principal, data) "
        f"VALUES ({xid}, 'core', {mark}, 's1', 1, 'local', {mark})"
    )
    flag = "0" if is_sqlite else "false"
    connection.execute(f"INSERT INTO deepwork_sessions VALUES ('m','raw','s1',1,1,'active','x',0,{flag},{flag},'','')")
    connection.commit()
    times = []
    for number in range(1, SAVES):
        session = a_saved_session(number)
        begin = time.perf_counter()
        document, summary = session.model_dump_json(), session.summary().model_dump_json()
        if is_sqlite:
            connection.execute("BEGIN IMMEDIATE")
        query = f"SELECT history_length FROM deepwork_sessions WHERE {key} AND revision = {mark}{lock}"
        length = connection.execute(query, (number,)).fetchone()[0]
        connection.execute(update, (number + 1, len(session.history), summary, document, number))
        for entry in session.history[length:]:
            connection.execute(event, (f"session:{entry.kind}", json.dumps(entry.model_dump(mode="json"))))
        connection.commit()
        times.append(time.perf_counter() - begin)
    return times


def measure_saves(engine: str, folder: Path) -> bool:
    """Save by turns, so that both meet the same machine."""
    with database_of(engine, folder) as (url, _), opened(url) as run:
        ours, raw = [], []
        for _ in range(3):
            ours += run(save_ours)
            raw += save_raw(url)
            execute_raw(url, "DELETE FROM deepwork_sessions")
    ratio = statistics.median(ours) / statistics.median(raw)
    p50 = statistics.median(ours) * 1000
    say(engine, "save", p50_ms=p50, raw_p50_ms=statistics.median(raw) * 1000, ratio=ratio, **judged(ratio <= 1.6))
    return True


def execute_raw(url: str, statement: str) -> None:
    connection = connect_raw(url)
    connection.execute(statement)
    connection.commit()
    connection.close()


# Items are claimed and completed


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
    if not tx.run(CLAIMED, item=item):  # somebody has completed it since its lease was seen to end
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
    """Say that this process is ready, and wait until it may begin."""
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


def start_worker(url: str, name: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "worker", url, name]
    command += [part for key, value in options.items() for part in (f"--{key}", str(value))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run_workers(url: str, processes: int, **options: Any) -> tuple[float, list[dict[str, Any]], list[str]]:
    """Run workers to their end: how long they took once all were there, their reports, what they acknowledged."""
    workers = [start_worker(url, f"w{n}", wait=True, **options) for n in range(processes)]
    for worker in workers:
        assert worker.stdout
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("begin\n")
        worker.stdin.flush()
    outputs = [worker.communicate()[0].splitlines() for worker in workers]
    reports = [json.loads(lines[-1]) for lines in outputs]
    seconds = max(report["end"] for report in reports) - min(report["begin"] for report in reports)
    return seconds, reports, [line for lines in outputs for line in lines if line.startswith("done ")]


def doubles(url: str) -> tuple[int, int]:
    """Count items that were completed twice, and leases that two workers had."""
    completions = rows_of(url, "SELECT item, fence, worker FROM completions")
    twice = sum(count > 1 for count in Counter(item for item, _, _ in completions).values())
    return twice, sum(count > 1 for count in Counter((item, fence) for item, fence, _ in completions).values())


def measure_claims(engine: str, folder: Path, items: int, processes: int, agents: int) -> bool:
    figures = {}
    for kind in ("raw", "ours"):
        with database_of(engine, folder) as (url, _), opened(url) as run:
            run(_nothing)
            make_items(url, items)
            seconds, reports, _ = run_workers(url, processes, agents=agents, kind=kind)
            claims = [one for report in reports for one in report["claims"]]
            done = rows_of(url, "SELECT count(*) FROM completions")[0][0]
            figures[kind] = items / seconds, quantile(claims, 0.5), quantile(claims, 0.99), done, doubles(url)
    (speed, p50, p99, done, double), (raw_speed, _, raw_p99, *_) = figures["ours"], figures["raw"]
    limit = 8 if engine == "sqlite" else 3
    ratios = {"speed_ratio": speed / raw_speed, "p99_ratio": p99 / raw_p99}
    say(
        engine,
        "claims",
        per_s=speed,
        p50_ms=p50,
        p99_ms=p99,
        **ratios,
        **judged(ratios["speed_ratio"] >= 0.6 and ratios["p99_ratio"] <= limit),
        done=done,
        double=double,
    )
    return done == items and double == (0, 0)


async def _nothing(_database: Database) -> None:
    """Open the database, which makes its tables."""


def measure_stale(engine: str, folder: Path, items: int, processes: int, agents: int, share: float) -> bool:
    """Some agents stop past their leases."""
    with database_of(engine, folder) as (url, _), opened(url) as run:
        run(_nothing)
        make_items(url, items)
        _, reports, _ = run_workers(url, processes, agents=agents, lease=SHORT_LEASE, pause=share)
        stale = sum((Counter(report["stale"]) for report in reports), Counter())
        done, double = rows_of(url, "SELECT count(*) FROM completions")[0][0], doubles(url)
    say(engine, "stale", refused=stale["refused"], accepted=stale["accepted"], done=done, double=double)
    return stale["accepted"] == 0 and stale["refused"] > 0 and done == items and double == (0, 0)


# The feed under writers


async def write_events(database: Database, name: str, seconds: float) -> int:
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await database.write(lambda tx, n=number: tx.emit("torture", "tick", workflow_id=name, data={"n": n}))
        number += 1
    return number


def measure_feed(engine: str, folder: Path, writers: int, seconds: float) -> bool:
    """A reader follows while processes write; then what it saw is compared with what is stored."""

    async def follow(database: Database, stop: threading.Event) -> list[Any]:
        seen: list[Any] = []
        after, quiet = None, 0
        while quiet < 3:
            page = await database.feed(after)
            seen += page
            after = page[-1].id if page else after
            quiet = quiet + 1 if not page and stop.is_set() else 0
            await anyio.sleep(0.02 if page else 0.1)
        return seen

    with database_of(engine, folder) as (url, _), opened(url) as run:
        run(_nothing)
        processes = [start_worker(url, f"w{n}", kind="events", seconds=seconds) for n in range(writers)]
        stop, result = threading.Event(), []
        reader = threading.Thread(target=lambda: result.extend(run(follow, stop)))
        reader.start()
        written = {f"w{n}": json.loads(process.communicate()[0])["claims"] for n, process in enumerate(processes)}
        stop.set()
        reader.join()
    streams: dict[str, list[int]] = {name: [] for name in written}
    for event in result:
        streams[event.workflow_id].append(event.data["n"])
    missed = sum(written.values()) - len(result)
    unordered = sum(numbers != list(range(written[name])) for name, numbers in streams.items())
    say(engine, "feed", written=sum(written.values()), missed=missed, streams_out_of_order=unordered)
    return missed == 0 and unordered == 0


# Servers and databases die


def measure_deaths(engine: str, folder: Path, seconds: float, processes: int, agents: int) -> bool:
    """PostgreSQL is restarted as if it had crashed every 5 s, and one process is killed every 2 s."""
    with database_of(engine, folder) as (url, cluster), opened(url) as run:
        run(_nothing)
        make_items(url, 200_000)
        options = {"agents": agents, "lease": SHORT_LEASE}
        acknowledged: list[str] = []
        readers = [Reader(start_worker(url, f"w{n}", **options), acknowledged) for n in range(processes)]
        while not all(reader.has_begun for reader in readers):
            time.sleep(0.05)
        kills = restarts = 0
        begin = time.monotonic()
        while time.monotonic() < begin + seconds:
            time.sleep(0.05)
            if time.monotonic() >= begin + 2 * (kills + 1):
                readers[kills % processes].worker.kill()
                readers[kills % processes].join()
                readers[kills % processes] = Reader(start_worker(url, f"k{kills}", **options), acknowledged)
                kills += 1
            if cluster and time.monotonic() >= begin + 5 * (restarts + 1):
                cluster.restart("immediate")
                restarts += 1
        for reader in readers:
            reader.worker.kill()
            reader.join()
        rows = rows_of(url, "SELECT item, fence FROM completions")
        events = len(run(_all_events))
    stored = Counter((item, str(fence)) for item, fence in rows)
    pairs = [tuple(line.split()[1:]) for line in acknowledged if len(line.split()) == 3]
    lost = sum(pair not in stored for pair in pairs)
    twice = sum(count > 1 for count in Counter(item for item, _ in stored.elements()).values())
    facts = {"acknowledged": len(pairs), "stored": len(rows), "events": events, "lost": lost, "twice": twice}
    say(engine, "deaths", kills=kills, restarts=restarts, **facts)
    return lost == 0 and twice == 0 and events == len(rows) and len(pairs) > 0


async def _all_events(database: Database) -> list[Any]:
    events: list[Any] = []
    while page := await database.feed(events[-1].id if events else None):
        events += page
    return events


class Reader(threading.Thread):
    """Collects the acknowledgements of a worker; a line that was cut off is none."""

    def __init__(self, worker: subprocess.Popen[str], lines: list[str]) -> None:
        super().__init__()
        self.worker = worker
        self.has_begun = False
        self._lines = lines
        self.start()

    def run(self) -> None:
        assert self.worker.stdout
        for line in self.worker.stdout:
            self.has_begun = True
            if line.startswith("done ") and line.endswith("\n"):
                self._lines.append(line)
        self.worker.wait()


@click.group()
def main() -> None:
    """Measure and torture the database on both engines."""


@main.command(hidden=True)
@click.argument("url")
@click.argument("name")
@click.option("--agents", type=int, default=1)
@click.option("--kind", default="ours")
@click.option("--lease", type=int, default=LEASE)
@click.option("--pause", type=float, default=0.0)
@click.option("--seconds", type=float, default=1.0)
@click.option("--wait", type=bool, default=False)
def worker(
    url: str, name: str, agents: int, kind: str, lease: int, pause: float, seconds: float, *, wait: bool
) -> None:
    """Be one process of a measurement."""
    with opened(url) as run:
        if kind == "raw":
            report = work_raw(url, name, agents)
        elif kind == "events":
            report = {"claims": run(write_events, name, seconds)}
        else:
            report = run(partial(work, wait=wait), name, agents, lease, pause)
    print(json.dumps(report), flush=True)


def _on_both(engines: tuple[str, ...], measure: Callable[[str, Path], bool]) -> None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        results = [measure(engine, Path(folder)) for engine in engines or ENGINES]
    sys.exit(not all(results))


engine_option = click.option("--engine", "engines", multiple=True, type=click.Choice(ENGINES), help="Only this one.")


@main.command()
@engine_option
def saves(engines: tuple[str, ...]) -> None:
    """Save one session again and again, beside RAW."""
    _on_both(engines, measure_saves)


@main.command()
@engine_option
@click.option("--items", default=4000, show_default=True)
@click.option("--processes", default=8, show_default=True)
@click.option("--agents", default=8, show_default=True)
def claims(engines: tuple[str, ...], items: int, processes: int, agents: int) -> None:
    """Claim and complete items, beside RAW."""
    _on_both(engines, partial(measure_claims, items=items, processes=processes, agents=agents))


@main.command()
@engine_option
@click.option("--items", default=4000, show_default=True)
@click.option("--processes", default=4, show_default=True)
@click.option("--agents", default=8, show_default=True)
@click.option("--share", default=0.01, show_default=True, help="So many of the claims are held too long.")
def stale(engines: tuple[str, ...], items: int, processes: int, agents: int, share: float) -> None:
    """Stop some agents past their leases."""
    _on_both(engines, partial(measure_stale, items=items, processes=processes, agents=agents, share=share))


@main.command()
@engine_option
@click.option("--writers", default=16, show_default=True)
@click.option("--seconds", default=60.0, show_default=True)
def feed(engines: tuple[str, ...], writers: int, seconds: float) -> None:
    """Read the feed while processes write."""
    _on_both(engines, partial(measure_feed, writers=writers, seconds=seconds))


@main.command()
@engine_option
@click.option("--seconds", default=60.0, show_default=True)
@click.option("--processes", default=3, show_default=True)
@click.option("--agents", default=4, show_default=True)
def deaths(engines: tuple[str, ...], seconds: float, processes: int, agents: int) -> None:
    """Restart PostgreSQL every 5 s, and kill a process every 2 s."""
    _on_both(engines, partial(measure_deaths, seconds=seconds, processes=processes, agents=agents))


if __name__ == "__main__":
    main()
