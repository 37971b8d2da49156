"""What tools cost an agent: their names, descriptions and input schemas, which its model reads with every request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import anyio

from deepwork.engine.engine import Engine
from deepwork.loading.discovery import Candidate
from deepwork.loading.selection import named_tools
from deepwork.project.project import Project
from deepwork.text import tokens_of


class Cost(NamedTuple):
    """What a tool set costs, or a subset of it (`SET:SUBSET`)."""

    plugin: Candidate
    name: str
    tools: int
    tokens: int


def measure_costs(project: Project, engine: Engine) -> list[Cost]:
    """Measure every installed tool set and each of its subsets.

    Raises:
        DeepWorkError: No server can be built with all of them.
    """
    sets = project.chosen_tool_sets(engine, [provided.item.name for provided in project.tool_sets(engine).items])
    names = iter(name for name, _ in named_tools(sets, project.config.tools.prefix))
    tokens = anyio.run(_tokens, project, engine, [provided.item.name for provided in sets])
    costs: list[Cost] = []
    for provided in sets:
        of_tool = {spec.name: tokens[next(names)] for spec in provided.item.tools}
        costs.append(Cost(provided.by, provided.item.name, len(of_tool), sum(of_tool.values())))
        for subset, tools in provided.item.subsets.items():
            total = sum(of_tool.get(tool, 0) for tool in tools)
            costs.append(Cost(provided.by, f"{provided.item.name}:{subset}", len(tools), total))
    return costs


async def _tokens(project: Project, engine: Engine, sets: list[str]) -> Mapping[str, int]:
    from deepwork.server.build import build_tools

    server = build_tools(project, engine, sets)
    tokens: dict[str, int] = {}
    for tool in await server.list_tools(run_middleware=False):
        tokens[tool.name] = tokens_of(tool.name, tool.description, tool.parameters)
    return tokens
