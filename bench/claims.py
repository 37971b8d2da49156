"""Claims in a database by many agents of many processes, beside RAW."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from bench.client import PATIENCE, ContestantError
from bench.contestants import Contestant
from bench.databases import addresses
from bench.measure import Run

SIDES = ("ours", "raw")


def measure_claims(run: Run) -> None:
    """Have 8 processes of 8 agents claim and complete items in each database."""
    with ExitStack() as ended:
        for name, url in ended.enter_context(addresses(run.folder)):
            contestant = Contestant(name, "")
            for number in run.rounds(f"claims in {name}", repeats=max(2, run.repeats // 2)):
                # The later one finds larger tables, so they take turns.
                order = SIDES if number % 2 else SIDES[::-1]
                taken = {side: _taken(run, side, url) for side in order}
                run.add("claims", contestant, run.sizes.items / taken["ours"][0], run.sizes.items / taken["raw"][0])
                run.add("claims.cpu", contestant, *(taken[side][1] * 1000 / run.sizes.items for side in SIDES))


def _taken(run: Run, side: str, url: str) -> tuple[float, float]:
    """Return the seconds, and those of processor time, until all items are done."""
    _claimer("items", url, run.sizes.items).communicate()
    workers = [_claimer(side, url, run.sizes.agents) for _ in range(run.sizes.servers)]
    for worker in workers:
        assert worker.stdout
        worker.stdout.readline()
    start = time.perf_counter()
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    results = [json.loads(worker.communicate(timeout=10 * PATIENCE)[0] or "{}") for worker in workers]
    seconds = time.perf_counter() - start
    if sum(result.get("done", 0) for result in results) != run.sizes.items:
        raise ContestantError(f"claims of {side}: not each item was done once: {results}")
    return seconds, sum(result["cpu"] for result in results)


def _claimer(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.claimers", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
