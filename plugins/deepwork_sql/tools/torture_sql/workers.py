"""Processes of agents, and what has become of their items."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from databases import rows_of


def start_worker(url: str, name: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__).parent), "worker", url, name]
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
