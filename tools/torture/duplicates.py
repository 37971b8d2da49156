"""Every finished_step is sent twice; it may count once, and both senders must get the same reply."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click
from agents import Agent
from ledger import Ledger, tell_losses
from report import Report, seed_option
from sample_project import tortured
from servers import Server
from stores import store_option

from deepwork.testing import result_of
from deepwork.testing.wire import PATIENCE

WAYS = ("at once", "one after the other", "to two servers at once")


class Twice:
    """Two servers that look like one, to which every report of a step is sent twice."""

    def __init__(self, servers: tuple[Server, Server]) -> None:
        self._servers = servers
        self.sent: Counter[str] = Counter()
        self.differing: list[str] = []

    def call(self, tool_name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return the first reply."""
        if tool_name != "finished_step":
            return self._servers[0].call(tool_name, **arguments)
        way = WAYS[self.sent.total() % len(WAYS)]
        self.sent[way] += 1
        first, second = self._answers(way, arguments)
        if _lasting(first) != _lasting(second):
            self.differing.append(f"{way}, {arguments['step_id']}: {first} / {second}")
        return first

    def _answers(self, way: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        if way == "one after the other":
            return tuple(self._servers[0].call("finished_step", **arguments) for _ in range(2))
        receivers = self._servers if way == "to two servers at once" else (self._servers[0], self._servers[0])
        futures = [server.send("tools/call", name="finished_step", arguments=arguments) for server in receivers]
        return tuple(result_of(future.result(PATIENCE)) for future in futures)


def _lasting(reply: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reply.items() if name not in ("stack", "notices")}


@click.command()
@click.option("--count", default=1000, show_default=True, help="How many calls to send twice.")
@store_option
@seed_option
def duplicates(count: int, store: str, seed: int) -> None:
    """Send every call twice: each may count once, and both get the same reply."""
    report = Report(f"duplicates: {count:,} finished_step calls with step_id, each sent twice ({store}), seed {seed}")
    with tortured("duplicates", store) as project:
        servers = (Server(project.root, env=project.store.env), Server(project.root, env=project.store.env))
        both = Twice(servers)
        ledger = Ledger(project, [Agent(str(seed), project, {"finish": 1})])
        while both.sent.total() < count:
            ledger.agents[0].act(both)
        for server in servers:
            server.close()
        ledger.check()
        ledger.finish()
    for way in WAYS:
        report.fact(f"sent twice {way}", both.sent[way])
    report.promise("reports that counted once", ledger.counts["completions"], count)
    report.promise("replies that differ in more than stack and notices", both.differing)
    tell_losses(report, [ledger])
    report.finish()
