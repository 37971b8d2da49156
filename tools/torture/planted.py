"""Builds with a bug planted in them must be found out, and the honest build must pass the same runs.

The bugs are in `injected/`, each a folder with a module that Python loads at its start: the source has none of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from report import Report, seed_option

HERE = Path(__file__).parent
FAILED = re.compile(r"^  FAILED: (.+)$", re.MULTILINE)
SKIPPED = re.compile(r"SKIPPED: (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Bug:
    """The run that has to notice a bug, and the promises that it may find broken."""

    run: tuple[str, ...]
    breaks: frozenset[str]


BUGS = {
    "in_process_lock": Bug(
        ("contention", "--servers", "3", "--agents", "2", "--changes", "150", "--seconds", "90"),
        frozenset({"acknowledged completions lost"}),
    ),
    "no_sync": Bug(("power", "--count", "4"), frozenset({"acknowledged starts lost", "acknowledged completions lost"})),
    "no_recorded_replies": Bug(("duplicates", "--count", "30"), frozenset({"calls refused that were right"})),
    "stack_in_memory": Bug(("kills", "--count", "2"), frozenset({"sessions resumed on the right step"})),
}


@click.command()
@click.option("--bug", "names", type=click.Choice([*BUGS]), multiple=True, help="Only this one; can be repeated.")
@seed_option
def planted(names: Sequence[str], seed: int) -> None:
    """Run short tortures against builds with planted bugs: each must be found out."""
    report = Report(f"planted: builds with a bug must be found out, and the honest one must pass, seed {seed}")
    missed: list[str] = []
    accused: list[str] = []
    for name in names or BUGS:
        bug = BUGS[name]
        print(f"planted: {name}", file=sys.stderr, flush=True)
        honest = _output(bug.run, seed)
        if skipped := SKIPPED.search(honest):
            report.note(f"SKIPPED: {name}, found by {bug.run[0]}: {skipped[1]}")
            continue
        broken = _broken(_output(bug.run, seed, injected=str(HERE / "injected" / name)))
        report.note(f"{name}, by {' '.join(bug.run)}: {', '.join(sorted(broken)) or 'nothing was found'}")
        if not broken & bug.breaks:
            missed.append(f"{name}: of {', '.join(sorted(bug.breaks))} nothing was broken")
        if _broken(honest) or "every promise was kept" not in honest:
            accused.append(f"{bug.run[0]}: {honest[-2000:]}")
    report.promise("planted bugs that were not found", missed)
    report.promise("runs that accuse the honest build", accused)
    report.finish()


def _output(run: tuple[str, ...], seed: int, *, injected: str = "") -> str:
    path = os.pathsep.join(filter(None, [injected, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(HERE), *run, "--seed", str(seed)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    if "Error in sitecustomize" in ended.stderr:  # Python goes on without the bug, as if nothing had happened
        raise RuntimeError(f"the bug could not be planted:\n{ended.stderr}")
    return ended.stdout + ended.stderr


def _broken(output: str) -> set[str]:
    match = FAILED.search(output)
    return set(match[1].split(", ")) if match else set()
