"""Measure and torture the database: `python plugins/deepwork_sql/tools/torture_sql --help`.

RAW is the same statements through sqlite3 and psycopg, with the same durability, in the same run.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
from agents import LEASE, work, work_raw
from claims import measure_claims, measure_stale
from databases import opened
from deaths import measure_deaths
from feed import measure_feed, write_events
from saves import measure_saves

ENGINES = ("sqlite", "postgresql")


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
