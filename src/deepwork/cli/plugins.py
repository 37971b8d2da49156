"""`deepwork plugins`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from deepwork.cli.costs import Cost, measure_costs
from deepwork.cli.offers import examine_plugins
from deepwork.commands.options import json_option, path_option, plugins_dir_option
from deepwork.commands.terminal import Styled, say, say_json, say_text
from deepwork.engine.engine import Engine
from deepwork.errors import DeepWorkError
from deepwork.loading.manager import PluginStatus, Provided
from deepwork.project.offers import Offers
from deepwork.project.project import Project

COLOURS = {"active": "green", "blocked": "yellow", "failed": "red"}


@click.command(epilog="Example: deepwork plugins --all --cost")
@click.argument("listing", metavar="[list]", required=False, type=click.Choice(["list"]), expose_value=False)
@path_option
@click.option("--all", "everything", is_flag=True, help="Also the core's own plugins.")
@click.option("--cost", is_flag=True, help="Also how many tokens each tool set costs an agent.")
@plugins_dir_option
@json_option
def plugins(root: str, everything: bool, cost: bool, plugins_dir: str | None, as_json: bool) -> int:
    """List the installed plugins: where each comes from, what it adds, and what is wrong with it.

    Exits with 1 if a plugin could not be loaded, or if anything would keep a server from starting.
    """
    project = Project(root, plugins_dir=plugins_dir)
    offers = examine_plugins(project)
    costs = _costs(project, offers.engine) if cost and offers.engine else []
    warnings = [*_tools_without_docstring(project, offers.engine)] if offers.engine else []
    rows = [
        _row(status, offers, costs, warnings)
        for status in project.plugins.statuses
        if everything or not status.plugin.builtin
    ]
    is_broken = bool(offers.errors or project.plugins.failures)
    if as_json:
        say_json({"plugins": rows, "errors": [str(error) for error in offers.errors]})
        return int(is_broken)
    for row in rows:
        _print(row)
    if not rows:
        say("No plugins besides the core's own; --all shows those.")
    for error in offers.errors:
        say(err=True)
        say_text(str(error), err=True)
    return int(is_broken)


def _tools_without_docstring(project: Project, engine: Engine) -> Iterator[Provided[str]]:
    for provided in project.tool_sets(engine).items:
        for spec in provided.item.tools:
            if not inspect.getdoc(spec.fn):
                text = f"the tool {spec.name!r} has no docstring, so that agents read no description of it"
                yield Provided(text, provided.by)


def _row(
    status: PluginStatus, offers: Offers, costs: Sequence[Cost], warnings: Sequence[Provided[str]]
) -> dict[str, Any]:
    adds: dict[str, list[str]] = {}
    for offer in offers.items:
        if offer.plugin == status.plugin:
            adds.setdefault(offer.kind, []).append(offer.name)
    causes = [failure.item.message for failure in offers.failures if failure.by == status.plugin]
    row: dict[str, Any] = {
        "name": status.plugin.name,
        "distribution": status.plugin.distribution,
        "version": status.plugin.version,
        "status": status.status,
        "hooks": list(status.hooks),
        "adds": adds,
        "warnings": [warning.item for warning in warnings if warning.by == status.plugin],
        "cause": status.cause or "\n".join(dict.fromkeys(causes)) or None,
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
    for warning in row["warnings"]:
        say_text(warning, "    ", Styled("!", "yellow"), " ")
    if row["cause"]:
        say_text(row["cause"], "    ")


def _costs(project: Project, engine: Engine) -> list[Cost]:
    try:
        return measure_costs(project, engine)
    except DeepWorkError as error:
        say_text(error.message, "The cost of the tools cannot be measured: ", err=True)
        return []
