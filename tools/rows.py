"""The table that all measuring tools print."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import click


@dataclass(frozen=True)
class Row:
    """One figure; `broken` lists behaviour that is wrong, which is worse than a figure that is missed."""

    figure: str
    goal: str
    measured: str
    reached: bool
    broken: tuple[str, ...] = ()


def show(rows: Iterable[Row]) -> None:
    """Print a table, each row when it is known, and end the process with the code that says whether all works."""
    broken: list[str] = []
    click.echo(f"{'figure':<38}  {'goal':<26}  {'measured':<58}  result")
    for row in rows:
        result = "BROKEN" if row.broken else "ok" if row.reached else "missed"
        click.echo(f"{row.figure:<38}  {row.goal:<26}  {row.measured:<58}  {result}")
        broken += row.broken
    for line in broken[:20]:
        click.echo(f"  broken: {line}", err=True)
    sys.exit(1 if broken else 0)
