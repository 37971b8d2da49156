"""Tortures of real servers: `python tools/torture --help`. Each prints what it did, and fails if a promise broke."""

from __future__ import annotations

import sys

import click
from amnesia import amnesia
from contention import contention
from duplicates import duplicates
from faults import faults
from kills import kills

seed_option = click.option("--seed", default=1, show_default=True, help="The same seed makes the same choices.")


@click.group(epilog="Example: python tools/torture kills --count 100")
def main() -> None:
    """Do to servers what happens to them, and check what they have promised."""


@main.command("kills")
@click.option("--count", default=1000, show_default=True, help="How many servers to kill.")
@seed_option
def kills_command(count: int, seed: int) -> None:
    """Kill servers at random moments: nothing acknowledged may be lost."""
    sys.exit(kills(count, seed))


@main.command("contention")
@click.option("--servers", default=4, show_default=True)
@click.option("--agents", default=4, show_default=True, help="Agents of each server.")
@click.option("--seconds", default=20.0, show_default=True)
@seed_option
def contention_command(servers: int, agents: int, seconds: float, seed: int) -> None:
    """Have servers compete for the same sessions: no update may be lost."""
    sys.exit(contention(servers, agents, seconds, seed))


@main.command("duplicates")
@click.option("--count", default=1000, show_default=True, help="How many calls to send twice.")
@seed_option
def duplicates_command(count: int, seed: int) -> None:
    """Send every call twice: each may count once, and both get the same reply."""
    sys.exit(duplicates(count, seed))


@main.command("faults")
@click.option("--quick", is_flag=True, help="One error for each write, not all five.")
def faults_command(*, quick: bool) -> None:
    """Make every write fail: calls say why, change nothing, and work when made again."""
    sys.exit(faults(quick=quick))


@main.command("amnesia")
@click.option("--count", default=200, show_default=True, help="How many random workflows.")
@seed_option
def amnesia_command(count: int, seed: int) -> None:
    """Have an agent that forgets everything after each call complete random workflows."""
    sys.exit(amnesia(count, seed))


if __name__ == "__main__":
    main()
