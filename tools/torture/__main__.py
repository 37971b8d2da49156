"""Tortures of real servers: `python tools/torture --help`. Each prints what it did, and fails if a promise broke."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
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
from planted import BUGS, planted
from power import power
from reviews import reviews
from servers import TRANSPORTS
from soak import soak
from stops import stops
from stores import STORES, Database

seed_option = click.option("--seed", default=1, show_default=True, help="The same seed makes the same choices.")
transport_option = click.option(
    "--transport", type=click.Choice([*TRANSPORTS]), default="stdio", show_default=True, help="How agents reach it."
)
store_option = click.option(
    "--store", type=click.Choice(STORES), default="json", show_default=True, help="Where sessions are kept."
)
database_option = click.option("--store", type=click.Choice(STORES[1:]), default="sqlite", show_default=True)


@click.group(epilog="Example: python tools/torture kills --count 100")
def main() -> None:
    """Do to servers what happens to them, and check what they have promised."""


@main.command("kills")
@click.option("--count", default=1000, show_default=True, help="How many servers to kill.")
@transport_option
@store_option
@seed_option
def kills_command(count: int, transport: str, store: str, seed: int) -> None:
    """Kill servers at random moments: nothing acknowledged may be lost."""
    sys.exit(kills(count, transport, store, seed))


@main.command("runs")
@click.argument("scenario", type=click.Choice(["cuts", "spending"]))
@click.option("--count", default=100, show_default=True, help="How many runs.")
@seed_option
def runs_command(scenario: str, count: int, seed: int) -> None:
    """Cut runs of agents at random requests: each completes, and what it has spent is counted once. Needs node."""
    sys.path.append(str(Path(__file__).parents[2] / "plugins" / "deepwork_run" / "tests"))  # its scripted vendors
    from runs import SCENARIOS

    sys.exit(SCENARIOS[scenario](count, seed))


@main.command("deliveries")
@click.option("--count", default=1000, show_default=True, help="How many texts.")
@click.option("--kills", "killed", default=50, show_default=True, help="How many servers to kill.")
@seed_option
def deliveries_command(count: int, killed: int, seed: int) -> None:
    """Send texts to agents while servers are killed: each text is in the next request, and repeated only if marked."""
    sys.exit(deliveries(count, killed, seed))


@main.command("reviews")
@click.option("--count", default=200, show_default=True, help="How many reviews.")
@click.option("--comments", default=2000, show_default=True, help="How many comments each.")
@click.option("--attempts", default=5, show_default=True, help="How often the work of each is reported.")
@click.option("--kills", "killed", default=100, show_default=True, help="How many servers and people to kill.")
@click.option("--races", default=500, show_default=True, help="How often two people decide at once.")
@seed_option
def reviews_command(count: int, comments: int, attempts: int, killed: int, races: int, seed: int) -> None:
    """Comment on texts that agents edit: none is lost, told twice or on a wrong line; of two people one decides."""
    sys.exit(reviews(count, comments, attempts, killed, races, seed))


@main.command("notifications")
@click.option("--count", default=200, show_default=True, help="How many senders to kill.")
@click.option("--within", default=2.0, show_default=True, metavar="SECONDS", help="How late they may be (p95).")
@seed_option
def notifications_command(count: int, within: float, seed: int) -> None:
    """Kill senders of notifications at random moments: nothing may be lost, and only what was sent may come again."""
    sys.exit(notifications(count, within, seed))


@main.command("power")
@click.option("--count", default=200, show_default=True, help="How often to cut the power.")
@seed_option
def power_command(count: int, seed: int) -> None:
    """Cut the power under servers: nothing acknowledged may be lost. Needs root, on Linux."""
    sys.exit(power(count, seed))


@main.command("stops")
@click.option("--count", default=200, show_default=True, help="How many servers to end.")
@click.option("--within", default=2.0, show_default=True, metavar="SECONDS", help="How long an end may take.")
@seed_option
def stops_command(count: int, within: float, seed: int) -> None:
    """End servers in order at random moments: they go at once, and leave nothing behind."""
    sys.exit(stops(count, within, seed))


@main.command("soak")
@click.option("--calls", default=100_000, show_default=True)
@click.option("--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True)
@seed_option
def soak_command(calls: int, transport: str, seed: int) -> None:
    """Make many calls to one server: it may neither grow nor become slower."""
    sys.exit(soak(calls, transport, seed))


@main.command("clock")
@click.option("--injected", is_flag=True, help="Inject a wrong clock into Python even where libfaketime is installed.")
def clock_command(*, injected: bool) -> None:
    """Set clocks 400 days back and 30 years ahead: answers, histories and listings stay the same."""
    sys.exit(clock(injected=injected))


@main.command("planted")
@click.option("--bug", "names", type=click.Choice([*BUGS]), multiple=True, help="Only this one; can be repeated.")
@seed_option
def planted_command(names: tuple[str, ...], seed: int) -> None:
    """Run short tortures against builds with planted bugs: each must be found out."""
    sys.exit(planted(names or tuple(BUGS), seed))


@main.command("contention")
@click.option("--servers", default=4, show_default=True)
@click.option("--agents", default=4, show_default=True, help="Agents of each server.")
@click.option("--seconds", default=20.0, show_default=True, help="The longest time that it may take.")
@click.option("--changes", type=click.IntRange(1), help="End earlier, after so many acknowledged changes.")
@transport_option
@store_option
@seed_option
def contention_command(
    servers: int, agents: int, seconds: float, changes: int | None, transport: str, store: str, seed: int
) -> None:
    """Have servers compete for the same sessions: no update may be lost."""
    sys.exit(contention(servers, agents, seconds, changes, transport, store, seed))


@main.command("items")
@database_option
@click.option("--count", default=4000, show_default=True)
@click.option("--processes", default=4, show_default=True)
@click.option("--agents", default=8, show_default=True, help="Agents of each process.")
@click.option("--late", default=0.01, show_default=True, help="So many of the leases are held too long.")
@click.option("--deaths", is_flag=True, help="Kill a process every 2 s, and restart PostgreSQL every 5 s.")
def items_command(store: str, count: int, processes: int, agents: int, late: float, *, deaths: bool) -> None:
    """Claim and complete items of a database: each is done once."""
    sys.exit(items(store, count, processes, agents, late, deaths=deaths))


@main.command("feed")
@database_option
@click.option("--writers", default=16, show_default=True)
@click.option("--seconds", default=60.0, show_default=True)
def feed_command(store: str, writers: int, seconds: float) -> None:
    """Read the feed of a database while processes write: all comes once, in order."""
    sys.exit(feed(store, writers, seconds))


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


@main.command("duplicates")
@click.option("--count", default=1000, show_default=True, help="How many calls to send twice.")
@store_option
@seed_option
def duplicates_command(count: int, store: str, seed: int) -> None:
    """Send every call twice: each may count once, and both get the same reply."""
    sys.exit(duplicates(count, store, seed))


@main.command("faults")
@click.option("--quick", is_flag=True, help="One error for each write, not all five.")
def faults_command(*, quick: bool) -> None:
    """Make every write fail: calls say why, change nothing, and work when made again."""
    sys.exit(faults(quick=quick))


@main.command("amnesia")
@click.option("--count", default=200, show_default=True, help="How many random workflows.")
@store_option
@seed_option
def amnesia_command(count: int, store: str, seed: int) -> None:
    """Have an agent that forgets everything after each call complete random workflows."""
    sys.exit(amnesia(count, store, seed))


if __name__ == "__main__":
    main()
