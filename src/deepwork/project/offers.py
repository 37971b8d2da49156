"""What every plugin adds to a project, and what would keep a server of the project from starting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    """What all plugins add, and what went wrong while they were asked.

    Attributes:
        items: What they add.
        errors: Everything that would keep a server from starting, each once.
        failures: The errors whose plugin is known.
        engine: For building tools; None if a job source or the store keeps it from being made.
    """

    items: list[Offer]
    errors: list[DeepWorkError]
    failures: list[Provided[DeepWorkError]]
    engine: Engine | None

    def joined(
        self, items: Iterable[Offer], errors: Iterable[DeepWorkError], failures: Iterable[Provided[DeepWorkError]]
    ) -> Offers:
        """Add further items and errors."""
        all_failures = [*self.failures, *failures]
        all_errors = [*self.errors, *errors, *(failure.item for failure in all_failures)]
        return Offers(
            [*self.items, *items], list({str(error): error for error in all_errors}.values()), all_failures, self.engine
        )


def list_offers(project: Project) -> Offers:
    """Ask every plugin for everything, and try what a server does at its start."""
    failures = [
        *project.job_sources.failures,
        *project.state_stores.failures,
        *project.review_runners.failures,
        *project.checks.failures,
        *project.agent_mail.failures,
        *project.provers.failures,
        *project.agents.failures,
        *project.inbox_sources.failures,
    ]
    errors = list(project.plugins.problems)
    items = list(_named_offers(project))
    gate, engine = None, None
    try:
        gate = project.gate()
    except DeepWorkError as error:
        errors.append(error)
    try:
        engine = project.engine(gate if project.config.quality_gate.enabled else None)
        sets, apps = project.tool_sets(engine), project.http_apps(engine)
        failures += [*sets.failures, *apps.failures]
        names = _served_names(project, engine, errors)
        items += _tool_offers(sets.items, names)
        items += (Offer(app.by, "http app", f"/plugins/{app.by.name}/") for app in apps.items)
    except DeepWorkError as error:
        errors.append(error)
    return Offers(items, [], [], engine).joined([], errors, failures)


def _named_offers(project: Project) -> Iterator[Offer]:
    for kind, answers in (
        ("job source", project.job_sources),
        ("state store", project.state_stores),
        ("review runner", project.review_runners),
        ("check", project.checks),
        ("agent mail", project.agent_mail),
        ("agent", project.agents),
    ):
        for provided in answers.items:
            yield Offer(provided.by, kind, provided.item.name)
    yield from (Offer(source.by, "inbox", source.item.name or source.by.name) for source in project.inbox_sources.items)


def _served_names(project: Project, engine: Engine, errors: list[DeepWorkError]) -> dict[int, str]:
    """Return the names of the tools as agents see them, by the identity of their records; a clash is one more error."""
    names: dict[int, str] = {}
    try:
        for name, tool in named_tools(project.chosen_tool_sets(engine), project.config.tools.prefix):
            names[id(tool.item)] = name
    except DeepWorkError as error:
        errors.append(error)
    return names


def _tool_offers(sets: Iterable[Provided[ToolSet]], names: Mapping[int, str]) -> Iterator[Offer]:
    for provided in sets:
        tool_set = provided.item
        yield Offer(provided.by, "tool set", tool_set.name)
        for spec in tool_set.tools:
            yield Offer(provided.by, "tool", names.get(id(spec), f"{tool_set.prefix or ''}{spec.name}"))
        yield from (Offer(provided.by, "resource", spec.uri) for spec in tool_set.resources)
        yield from (Offer(provided.by, "prompt", spec.name) for spec in tool_set.prompts)
