"""What every plugin adds to a project, and what would keep a server of the project from starting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from deepwork.engine.engine import Engine
from deepwork.errors import DeepWorkError
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import Provided
from deepwork.loading.selection import named_tools
from deepwork.ports.records import ToolSet
from deepwork.project.project import Project


class Offer(NamedTuple):
    """One thing that a plugin adds."""

    plugin: Candidate
    kind: str
    name: str


class Offers(NamedTuple):
    """What all plugins add, and what went wrong while they were asked."""

    items: list[Offer]
    errors: list[DeepWorkError]
    engine: Engine | None


def list_offers(project: Project) -> Offers:
    """Ask every plugin for everything, and try what a server does at its start."""
    errors = [
        *project.plugins.problems,
        *project.job_sources.errors,
        *project.state_stores.errors,
        *project.review_runners.errors,
        *project.checks.errors,
    ]
    items = list(_named_offers(project))
    engine = None
    try:
        engine = project.engine()
        sets = project.tool_sets(engine)
        errors += sets.errors
        items += _tool_offers(sets.items)
        apps = project.http_apps(engine)
        errors += apps.errors
        items += (Offer(app.by, "http app", f"/plugins/{app.by.name}/") for app in apps.items)
        list(named_tools(project.chosen_tool_sets(engine), project.config.tools.prefix))
    except DeepWorkError as error:
        errors.append(error)
    try:
        project.gate()
    except DeepWorkError as error:
        errors.append(error)
    return Offers(items, list({str(error): error for error in errors}.values()), engine)


def _named_offers(project: Project) -> Iterator[Offer]:
    for kind, answers in (
        ("job source", project.job_sources),
        ("state store", project.state_stores),
        ("review runner", project.review_runners),
        ("check", project.checks),
    ):
        for provided in answers.items:
            yield Offer(provided.by, kind, provided.item.name)


def _tool_offers(sets: Iterable[Provided[ToolSet]]) -> Iterator[Offer]:
    for provided in sets:
        yield from (Offer(provided.by, "tool", spec.name) for spec in provided.item.tools)
        yield from (Offer(provided.by, "resource", spec.uri) for spec in provided.item.resources)
        yield from (Offer(provided.by, "prompt", spec.name) for spec in provided.item.prompts)
