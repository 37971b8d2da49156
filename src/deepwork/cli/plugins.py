"""`deepwork plugins`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from deepwork.cli.offers import examine_plugins
from deepwork.cli.options import json_option, path_option, plugins_dir_option
from deepwork.cli.terminal import Styled, say, say_json, say_text
from deepwork.engine.engine import Engine
from deepwork.errors import DeepWorkError
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import PluginStatus
from deepwork.project.offers import Offers
from deepwork.project.project import Project

COLOURS = {"active": "green", "blocked": "yellow", "failed": "red"}


@click.command(epilog="Example: deepwork plugins --all --cost")
@path_option
@click.option("--all", "everything", is_flag=True, help="Also the core's own plugins.")
@click.option("--cost", is_flag=True, help="Also how many tokens the tools of each plugin cost an agent.")
@plugins_dir_option
@json_option
def plugins(root: str, everything: bool, cost: bool, plugins_dir: str | None, as_json: bool) -> int:
    """List the installed plugins: where each comes from, what it adds, and what is wrong with it.

    Exits with 1 if a plugin could not be loaded, or if anything would keep a server from starting.
    """
    project = Project(root, plugins_dir=plugins_dir)
    offers = examine_plugins(project)
    costs = _costs(project, offers.engine) if cost and offers.engine else {}
    rows = [
        _row(status, offers, costs) for status in project.plugins.statuses if everything or not status.plugin.builtin
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


def _row(status: PluginStatus, offers: Offers, costs: Mapping[Candidate, int]) -> dict[str, Any]:
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
        "cause": status.cause or "\n".join(dict.fromkeys(causes)) or None,
    }
    if costs:
        row["tokens"] = costs.get(status.plugin, 0)
    return row


def _print(row: Mapping[str, Any]) -> None:
    status = Styled(row["status"], COLOURS[row["status"]])
    tokens = f"  tools of about {row['tokens']} tokens" if row.get("tokens") else ""
    say(Styled(row["name"], bold=True), f"  {row['distribution']} {row['version']}  ", status, tokens)
    for kind, names in row["adds"].items():
        say(f"    {kind}: {', '.join(names)}")
    if row["cause"]:
        say_text(row["cause"], "    ")


def _costs(project: Project, engine: Engine) -> dict[Candidate, int]:
    """Estimate what a model reads of each plugin's tools: names, descriptions and input schemas, compact.

    Four characters count as a token.
    """
    import anyio

    from deepwork.loading.selection import named_tools
    from deepwork.server.build import build_server

    async def measure() -> dict[Candidate, int]:
        server = build_server(project, engine)
        costs: dict[Candidate, int] = {}
        for name, tool in named_tools(project.chosen_tool_sets(engine), project.config.tools.prefix):
            served = await server.get_tool(name)
            if served:
                schema = json.dumps(served.parameters, separators=(",", ":"))
                cost = len(f"{name}{served.description}{schema}") // 4
                costs[tool.by] = costs.get(tool.by, 0) + cost
        return costs

    try:
        return anyio.run(measure)
    except DeepWorkError as error:
        say_text(error.message, "The cost of the tools cannot be measured: ", err=True)
        return {}
