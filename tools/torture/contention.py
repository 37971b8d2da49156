"""Several servers and agents at work on the same sessions; every acknowledged change must be there, once."""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import click
from agents import COMPETES, Agent, OpenSteps
from ledger import Ledger, tell_losses
from report import Report, seed_option
from sample_project import tortured
from servers import TRANSPORTS, AnyServer, transport_option
from stores import store_option

from deepwork.testing import Gone


@click.command()
@click.option("--servers", default=4, show_default=True)
@click.option("--agents", default=4, show_default=True, help="Agents of each server.")
@click.option("--seconds", default=20.0, show_default=True, help="The longest time that it may take.")
@click.option("--changes", type=click.IntRange(1), help="End earlier, after so many acknowledged changes.")
@transport_option
@store_option
@seed_option
def contention(
    servers: int, agents: int, seconds: float, changes: int | None, transport: str, store: str, seed: int
) -> None:
    """Have servers compete for the same sessions: no update may be lost."""
    until = f"until {changes:,} changes" if changes else f"for {seconds:g} s"
    report = Report(f"contention: {servers} servers ({transport}, {store}) x {agents} agents {until}, seed {seed}")
    with tortured("contention", store) as project:
        kinds = TRANSPORTS[transport]
        running = [kinds[number % len(kinds)](project.root, env=project.store.env) for number in range(servers)]
        shared: OpenSteps = {}
        names = [f"{seed}-{number}" for number in range(servers * agents)]
        ledger = Ledger(project, [Agent(name, project, COMPETES, shared=shared) for name in names])
        deadline = time.monotonic() + seconds

        def acknowledged() -> int:
            return sum(len(agent.acknowledged) for agent in ledger.agents)

        def work(agent: Agent, server: AnyServer) -> None:
            try:
                while time.monotonic() < deadline and not (changes and acknowledged() >= changes):
                    agent.act(server)
            except (Gone, TimeoutError) as error:
                agent.refused.append(f"no answer: {error!r}")

        with ThreadPoolExecutor(len(ledger.agents)) as pool:
            list(pool.map(work, ledger.agents, itertools.cycle(running)))
        for server in running:
            server.close()
        ledger.check()
        ledger.finish()
    tell_losses(report, [ledger])
    report.finish()
