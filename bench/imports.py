"""What is imported before a server answers, by package."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from bench.contestants import FLOOR
from bench.measure import Run

SHOWN = 12

_LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")

# The packages and their milliseconds, the slowest first; all others, and everything, under names of their own.
Table = list[tuple[str, float]]


def measure_imports(run: Run) -> None:
    """Look once what each contestant and FLOOR have imported when `tools/list` is answered."""
    project = run.folder / "imports"
    project.mkdir()
    for contestant in [FLOOR, *run.piped()]:
        timed = replace(contestant, env={**contestant.env, "PYTHONPROFILEIMPORTTIME": "1"})
        with run.launcher.started(timed, project) as server:
            log = server.process.log_text()
        if table := _table(log):
            run.imports[contestant.name] = table


def _table(log: str) -> Table:
    """Sum the time that each package took itself, without what it imported."""
    packages: Counter[str] = Counter()
    for microseconds, module in _LINE.findall(log):
        packages[module.partition(".")[0]] += int(microseconds)
    slowest = packages.most_common(SHOWN)
    remainder = packages.total() - sum(time for _, time in slowest)
    rows = [*slowest, ("others", remainder), ("together", packages.total())]
    return [(name, time / 1000) for name, time in rows] if packages else []
