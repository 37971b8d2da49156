"""Tortures of real servers: `python tools/torture --help`. Each prints what it did, and fails if a promise broke."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import click

sys.path.append(str(Path(__file__).parents[2]))  # for `bench.items`
from amnesia import amnesia
from clock import clock
from contention import contention
from deliveries import deliveries
from duplicates import duplicates
from faults import faults
from feed import feed, write_events
from items import items, work
from kills import kills
from notifications import notifications
from planted import planted
from power import power
from proofs import proofs
from report import seed_option
from reviews import reviews
from soak import soak
from stops import stops
from stores import Database


@click.group(epilog="Example: python tools/torture kills --count 100")
@click.pass_context
def main(context: click.Context) -> None:
    """Do to servers what happens to them, and check what they have promised."""
    if context.invoked_subcommand == worker.name:  # which is killed, and has the home of its torture
        return
    home = context.with_resource(tempfile.TemporaryDirectory(prefix="deepwork-home-"))
    os.environ |= {"XDG_CONFIG_HOME": f"{home}/config", "XDG_STATE_HOME": f"{home}/state"}


@main.command()
@click.argument("scenario", type=click.Choice(["cuts", "spending", "waits"]))
@click.option("--count", default=100, show_default=True, help="How many runs; of `waits`, how many seconds.")
@seed_option
def runs(scenario: str, count: int, seed: int) -> None:
    """Cut runs of agents at random requests: each completes, and what it has spent is counted once; cuts need node.

    `waits` measures a runner that waits for a limit.
    """
    sys.path.append(str(Path(__file__).parents[2] / "plugins" / "deepwork_run" / "tests"))  # its scripted vendors
    from runs import SCENARIOS

    SCENARIOS[scenario](count, seed)


@main.command(hidden=True)
@click.argument("url")
@click.argument("kind", type=click.Choice(["items", "events"]))
@click.argument("name")
@click.argument("numbers", nargs=-1, type=float)
def worker(url: str, kind: str, name: str, numbers: tuple[float, ...]) -> None:
    """Be one of the processes that work on a database."""
    if kind == "items":
        agents, late = numbers
        report = Database(url).run(work, name, int(agents), late)
    else:
        report = Database(url).run(write_events, name, *numbers)
    click.echo(json.dumps(report))


TORTURES = (amnesia, clock, contention, deliveries, duplicates, faults, feed, items, kills, notifications, planted)
for torture in (*TORTURES, power, proofs, reviews, soak, stops):
    main.add_command(torture)

if __name__ == "__main__":
    main()
