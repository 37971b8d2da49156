"""Servers and databases die."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from agents import make_items
from claims import SHORT_LEASE
from databases import database_of, nothing, opened, rows_of, say
from workers import start_worker

from deepwork_sql import Database


def measure_deaths(engine: str, folder: Path, seconds: float, processes: int, agents: int) -> bool:
    """PostgreSQL is restarted as if it had crashed every 5 s, and one process is killed every 2 s."""
    with database_of(engine, folder) as (url, cluster), opened(url) as run:
        run(nothing)
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
    """Collects the acknowledgements of a worker; a line that was cut off does not count."""

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
