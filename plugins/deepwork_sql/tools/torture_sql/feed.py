"""The feed is read while processes write."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import anyio
from databases import database_of, nothing, opened, say
from workers import start_worker

from deepwork_sql import Database


async def write_events(database: Database, name: str, seconds: float) -> int:
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        await database.write(lambda tx, n=number: tx.emit("torture", "tick", workflow_id=name, data={"n": n}))
        number += 1
    return number


def measure_feed(engine: str, folder: Path, writers: int, seconds: float) -> bool:
    """A reader follows while processes write; then its events are compared with the stored ones."""

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
        run(nothing)
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
