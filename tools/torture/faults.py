"""Every write fails once, files and disks and databases are in trouble; each call has to say so or to get over it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from machine_faults import files_faults, sqlite_faults
from postgres_faults import postgres_faults
from report import Report
from stores import store_option
from suffering import Suffering

FAULTS = {"json": files_faults, "sqlite": sqlite_faults, "postgresql": postgres_faults}


@click.command()
@click.option("--quick", is_flag=True, help="One error for each write, not all five; nothing that takes half a minute.")
@store_option
def faults(store: str, *, quick: bool) -> None:
    """Have writes, disks and databases fail: calls say why, change nothing, and work when made again."""
    report = Report(f"faults: every write of every call fails once ({store}), then the machine is in trouble")
    suffering = Suffering()
    with tempfile.TemporaryDirectory(prefix="deepwork-faults-") as folder:
        for note in FAULTS[store](suffering, Path(folder), quick=quick):
            report.note(note)
    report.fact("calls in trouble", suffering.counts["calls"])
    report.fact("  refused, with the reason", suffering.counts["refused"])
    report.fact("  made all the same", suffering.counts["calls"] - suffering.counts["refused"])
    report.promise("errors that do not name the cause", suffering.unnamed)
    report.promise("what failed calls have changed", suffering.changed)
    report.promise("calls that did not work when made again", suffering.stuck)
    report.promise("calls that were not made once", suffering.not_once)
    report.promise("tracebacks in the server's log", suffering.counts["tracebacks"])
    report.finish()
