"""`deepwork plugins`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from deepwork.cli.costs import Cost, measure_costs
from deepwork.cli.options import json_option, path_option
from deepwork.cli.terminal import Styled, say, say_json, say_text
from deepwork.engine.engine import Engine
from deepwork.errors import DeepWorkError
from deepwork.loading.manager import PluginStatus
from deepwork.project.offers import list_offers
from deepwork.project.project import Project

COLOURS = {"active": "green", "blocked": "yellow", "failed": "red"}


@click.command(epilog="Example: deepwork plugins --all --cost")
@click.argument("listing", metavar="[list]", required=False, type=click.Choice(["list"]), expose_value=False)
@path_option
@click.option("--all", "everything", is_flag=True, help="Also the core's own plugins.")
@click.option("--cost", is_flag=True, help="Also how many tokens each tool set costs an agent.")
@json_option
def plugins(root: str, everything: bool, cost: bool, as_json: bool) -> None:
    """List the installed plugins: where each comes from, what it adds, and what is wrong with it."""
    project = Project(root)
    offers = list_offers(project)
    costs = _costs(project, offers.engine) if cost and offers.engine else []
    rows = [
        _row(status, [(kind, name) for by, kind, name in offers.items if by == status.plugin], costs)
        for status in project.plugins.statuses
        if everything or not status.plugin.builtin
    ]
    if as_json:
        say_json({"plugins": rows, "errors": [str(error) for error in offers.errors]})
        return
    for row in rows:
        _print(row)
    if not rows:
        say("No plugins besides the core's own; --all shows those.")
    for error in offers.errors:
        say(err=True)
        say_text(str(error), err=True)


def _row(status: PluginStatus, offers: list[tuple[str, str]], costs: Sequence[Cost]) -> dict[str, Any]:
    adds: dict[str, list[str]] = {}
    for kind, name in offers:
        adds.setdefault(kind, []).append(name)
    row: dict[str, Any] = {
        "name": status.plugin.name,
        "distribution": status.plugin.distribution,
        "version": status.plugin.version,
        "status": status.status,
        "hooks": list(status.hooks),
        "adds": adds,
        "cause": status.cause,
    }
    if costs:
        own = [cost for cost in costs if cost.plugin == status.plugin]
        row["tokens"] = sum(cost.tokens for cost in own if ":" not in cost.name)
        row["tool_sets"] = {cost.name: {"tools": cost.tools, "tokens": cost.tokens} for cost in own}
    return row


def _print(row: Mapping[str, Any]) -> None:
    status = Styled(row["status"], COLOURS[row["status"]])
    say(Styled(row["name"], bold=True), f"  {row['distribution']} {row['version']}  ", status)
    for kind, names in row["adds"].items():
        say(f"    {kind}: {', '.join(names)}")
    for name, cost in row.get("tool_sets", {}).items():
        say(f"    --tools {name}: {cost['tools']} tools, about {cost['tokens']:,} tokens")
    if row["cause"]:
        say_text(row["cause"], "    ")


def _costs(project: Project, engine: Engine) -> list[Cost]:
    try:
        return measure_costs(project, engine)
    except DeepWorkError as error:
        say_text(error.message, "The cost of the tools cannot be measured: ", err=True)
        return []
