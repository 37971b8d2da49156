"""The feed of a database is read while processes write."""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click
from items import start_worker
from report import Report
from stores import Database, database_option, opened_store

if TYPE_CHECKING:
    import deepwork_sql


async def write_events(database: deepwork_sql.Database, name: str, seconds: float) -> int:
    """Write numbered events for so long; return how many."""
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await database.write(lambda tx, n=number: tx.emit("torture", "tick", workflow_id=name, data={"n": n}))
        number += 1
    return number


async def follow(database: deepwork_sql.Database, stop: threading.Event) -> list[Any]:
    """Read the feed until it is quiet after the writers have stopped."""
    events: list[Any] = []
    after, quiet = None, 0
    while quiet < 3:
        page = await database.feed(after)
        events += page
        after = page[-1].id if page else after
        quiet = quiet + 1 if not page and stop.is_set() else 0
        await anyio.sleep(0.02 if page else 0.1)
    return events


@click.command()
@database_option
@click.option("--writers", default=16, show_default=True)
@click.option("--seconds", default=60.0, show_default=True)
def feed(store: str, writers: int, seconds: float) -> None:
    """Read the feed of a database while processes write: all comes once, in order."""
    report = Report(f"feed: one reader and {writers} writers on {store} for {seconds:g} s")
    with tempfile.TemporaryDirectory(prefix="deepwork-feed-") as folder, opened_store(store, Path(folder)) as database:
        assert isinstance(database, Database)
        processes = [start_worker(database.url, "events", f"w{number}", seconds) for number in range(writers)]
        stop, events = threading.Event(), []
        reader = threading.Thread(target=lambda: events.extend(database.run(follow, stop)))
        reader.start()
        written = {f"w{number}": int(process.communicate()[0]) for number, process in enumerate(processes)}
        stop.set()
        reader.join()
    streams: dict[str, list[int]] = {name: [] for name in written}
    for event in events:
        streams[event.workflow_id].append(event.data["n"])
    report.fact("events written", sum(written.values()))
    report.promise("events missed", sum(written.values()) - len(events))
    unordered = [name for name, numbers in streams.items() if numbers != [*range(written[name])]]
    report.promise("streams out of order", unordered)
    report.finish()
