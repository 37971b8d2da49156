"""`deepwork doctor`: what is right, what is wrong, and the command that fixes it."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import anyio
import click
from click.core import ParameterSource

from deepwork.cli.costs import measure_costs
from deepwork.cli.environment import environment_findings
from deepwork.cli.offers import examine_plugins
from deepwork.cli.schema import MODELS, schema_text
from deepwork.commands.options import json_option, path_option, plugins_dir_option, probable_root
from deepwork.commands.terminal import Styled, say, say_json, say_text
from deepwork.documents.limits import MAX_BYTES
from deepwork.errors import DeepWorkError, PathRefused
from deepwork.loading.faults import findings_of
from deepwork.loading.manager import PluginStatus
from deepwork.paths.paths import read_regular
from deepwork.paths.user_folders import user_config_file
from deepwork.ports.records import Finding, Level
from deepwork.ports.state_store import StateStore
from deepwork.programs.installation import installation
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.project.offers import Offers
from deepwork.project.project import Project

MARKS = {Level.OK: ("✓", "green"), Level.INFO: ("·", None), Level.WARNING: ("!", "yellow"), Level.ERROR: ("✗", "red")}
MAX_WAITING = 50


@click.command(epilog="Exits with 1 if there is an error; warnings and information do not count.")
@path_option
@plugins_dir_option
@json_option
def doctor(root: str, plugins_dir: str | None, as_json: bool) -> int:
    """Check the installation and this project."""
    own = installation(os.environ)
    with stdout_on_stderr():
        groups = _without_repeated_errors([("environment", environment_findings(own)), *_examine(root, plugins_dir)])
    levels = Counter(finding.level for findings in groups.values() for finding in findings)
    broken = levels[Level.ERROR] > 0
    if as_json:
        report = [
            {"check": name, "level": finding.level, "text": finding.text, "cure": finding.cure}
            for name, findings in groups.items()
            for finding in findings
        ]
        say_json({"ok": not broken, "install": {"route": own.route, "upgrade": own.upgrade}, "findings": report})
        return int(broken)
    for name, findings in groups.items():
        if findings:
            say(Styled(name, bold=True))
        for finding in findings:
            say_text(finding.text, "  ", Styled(*MARKS[finding.level]), " ")
            if finding.cure:
                say_text(finding.cure, "      -> ")
    say("")
    say(Styled(f"{_counted(levels[Level.ERROR], 'error')}, {_counted(levels[Level.WARNING], 'warning')}", bold=True))
    return int(broken)


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _examine(root: str, plugins_dir: str | None) -> Iterator[tuple[str, Iterable[Finding]]]:
    try:
        project = Project(root, plugins_dir=plugins_dir)
    except DeepWorkError as error:
        yield "configuration", [Finding(Level.ERROR, error.message, error.hint)]
        return
    offers = examine_plugins(project)  # before anything is said of trust: plugins name the settings that need it
    yield "project", _project(project)
    yield "configuration", _configuration(project)
    yield "plugins", _plugins(project, offers)
    yield "quality gate", _guarded(lambda: _gate(project, offers))
    yield "tools", _guarded(lambda: _tools(project, offers))
    yield "jobs", _guarded(lambda: _jobs(project))
    yield "sessions", _guarded(lambda: _sessions(project))
    for check in project.checks.items:  # plugins whose hook failed are listed under `plugins`
        yield check.item.name, findings_of(check.item, check.by)


def _without_repeated_errors(groups: Iterable[tuple[str, Iterable[Finding]]]) -> dict[str, list[Finding]]:
    """Run the checks, and report each error once, although several checks may meet it."""
    texts: set[str] = set()
    new: dict[str, list[Finding]] = {}
    for name, findings in groups:
        group = new.setdefault(name, [])
        for finding in findings:
            if finding.level is not Level.ERROR or finding.text not in texts:
                group.append(finding)
            texts.add(finding.text)
    return new


def _source() -> str:
    """Return where the project's path comes from: an option, a variable, or the default."""
    context = click.get_current_context()
    sources = {
        ParameterSource.COMMANDLINE: "--path",
        ParameterSource.ENVIRONMENT: "DEEPWORK_PROJECT",
    }
    is_here = context.params["root"] == "."
    default = "the current folder" if is_here else "the folders above the current one"
    return sources.get(context.get_parameter_source("root") or ParameterSource.DEFAULT, default)


def _project(project: Project) -> Iterator[Finding]:
    root = project.workspace.root
    yield Finding(Level.OK, f"root {root} (from {_source()})")
    if Path(os.path.realpath(sys.prefix)).is_relative_to(root):
        yield Finding(
            Level.INFO, f"the environment that runs deepwork lies in it; {_writers(sys.prefix)} can change it"
        )
    if project.workspace.home.is_dir():
        return
    parent = probable_root(root)
    if parent:
        yield Finding(Level.WARNING, f"it has no .deepwork, but {parent} has", f"deepwork doctor --path {parent}")
    else:
        yield Finding(Level.INFO, "it has no .deepwork", "deepwork init")


def _writers(folder: str) -> str:
    mode = os.stat(folder).st_mode
    if mode & stat.S_IWOTH:
        return "every user of this machine"
    return "you and your group" if mode & stat.S_IWGRP else "only you"


def _configuration(project: Project) -> Iterator[Finding]:
    for file in (user_config_file(os.environ), project.workspace.config_file):
        exists = file.exists()
        state = "read" if exists else "does not exist, which is fine"
        yield Finding(Level.OK if exists else Level.INFO, f"{file}: {state}")
    for request in project.trust_requests()[:MAX_WAITING]:
        yield Finding(Level.WARNING, f"{request.label} has no effect until you approve it", "deepwork trust")
    for label, reason in [*project.unusable_commands().items()][:MAX_WAITING]:
        yield Finding(Level.ERROR, f"{label}: {reason}", "correct its `run` in the configuration")
    for text in project.ignored:
        yield Finding(Level.WARNING, text)
    for text in project.unknown_sections():
        yield Finding(Level.WARNING, text, "correct the name in the configuration, or install the plugin")
    for kind in MODELS:
        file = project.workspace.home / "schema" / f"{kind}.schema.json"
        content = _small_file(file, project.workspace.root)
        if content is not None and content != schema_text(kind):
            yield Finding(Level.WARNING, f"{project.workspace.shown(file)} is from another release", "deepwork init")


def _plugins(project: Project, offers: Offers) -> Iterator[Finding]:
    for status in project.plugins.statuses:
        if status.status == "failed":
            cure = f"install a release of {status.plugin.distribution} that works, or name it in plugins.block"
            yield Finding(Level.WARNING, f"{status.plugin} is left out: {status.cause}", cure)
        elif not status.plugin.builtin:
            yield from _plugin(status, offers)
    attributed = {str(failure.item) for failure in offers.failures}
    for error in (error for error in offers.errors if str(error) not in attributed):
        yield Finding(Level.ERROR, error.message, error.hint)
    if not offers.errors:
        active = sum(status.status == "active" for status in project.plugins.statuses)
        yield Finding(Level.OK, f"{active} plugins active, the core's own included")


def _plugin(status: PluginStatus, offers: Offers) -> Iterator[Finding]:
    own = [offer for offer in offers.items if offer.plugin == status.plugin]
    adds = [f"{offer.kind} {offer.name}" for offer in own if offer.kind != "tool"]
    if tools := len(own) - len(adds):  # `deepwork plugins` names them
        adds.append(f"{tools} tool{'s' if tools > 1 else ''}")
    errors = [failure.item for failure in offers.failures if failure.by == status.plugin]
    for error in errors:
        by_name = error.message if str(status.plugin) in error.message else f"{status.plugin}: {error.message}"
        yield Finding(Level.ERROR, by_name, error.hint)
    if adds or not errors:
        state = ", ".join(adds) or "adds nothing" if status.status == "active" else status.status
        yield Finding(Level.INFO if errors else Level.OK, f"{status.plugin}: {state}")


def _gate(project: Project, offers: Offers) -> Iterator[Finding]:
    """Yield what keeps a strict gate from getting verdicts, or any gate from being tried, under this configuration."""
    section = project.config.quality_gate
    if section.enabled and section.commands and section.prove == "warn" and not project.provers.items:
        text = f"quality_gate.prove is warn, and no plugin tries gates on broken work{project.plugins.left_out_text}"
        cure = "load it again (plugins.block), or set quality_gate.prove: off in your own config.yml"
        yield Finding(Level.WARNING, f"{text}: a gate that cannot fail is not noticed", cure)
    if not section.enabled and not section.strict:
        yield Finding(
            Level.INFO, "it is off: steps are completed without their reviews", "set quality_gate.enabled: true"
        )
    if offers.engine is None or offers.errors:
        return  # what is wrong is said under `plugins`
    if not section.strict:
        for name, reason in anyio.run(project.broken_reviewers).items():
            yield Finding(Level.WARNING, f"the reviewer {name!r} cannot work: {reason.message}", reason.hint)
        return
    error = anyio.run(offers.engine.strict.obstacle)
    if error:
        text = f"the quality gate is strict, and {error.message}; no workflow can be started"
        yield Finding(Level.ERROR, text, error.hint)


def _tools(project: Project, offers: Offers) -> Iterator[Finding]:
    """Yield the cost of the tool sets; a warning only if the configured sets exceed the configured budget."""
    if offers.engine is None or offers.errors:
        return  # what is wrong is said under `plugins`
    costs = measure_costs(project, offers.engine)
    for cost in costs:
        yield Finding(Level.INFO, f"--tools {cost.name}: {cost.tools} tools, about {cost.tokens:,} tokens")
    section = project.config.tools
    tokens = {cost.name: cost.tokens for cost in costs}
    if section.sets is None:
        total = sum(cost.tokens for cost in costs if ":" not in cost.name)
        text = f"agents get every installed set, about {total:,} tokens"
        yield Finding(Level.INFO, text, "name those that are needed: tools.sets in .deepwork/config.yml")
        return
    total = sum(tokens[name] for name in dict.fromkeys(section.sets))
    yield Finding(Level.OK, f"agents get {', '.join(section.sets)}, about {total:,} tokens")
    if section.budget is not None and total > section.budget:
        text = f"the tools of tools.sets cost about {total:,} tokens, more than tools.budget: {section.budget:,}"
        yield Finding(Level.WARNING, text, "choose fewer sets or a subset: tools.sets")


def _jobs(project: Project) -> Iterator[Finding]:
    listing = project.catalogue.list()
    yield Finding(Level.OK, f"{len(listing.jobs)} jobs can be started")
    for _, error in listing.errors:
        yield Finding(Level.ERROR, error.message, error.hint or f"deepwork jobs check {error.job_dir}")
    for _, job in listing.jobs:
        for line in job.errors:
            yield Finding(Level.ERROR, line, f"deepwork jobs check {job.job_dir}")
        for warning in job.warnings:
            yield Finding(Level.WARNING, warning, f"deepwork jobs check {job.job_dir}")
    for hidden in listing.shadowed:
        text = f"the job {hidden.job.name!r} of {hidden.source} is not used: {hidden.by} has one of the same name"
        yield Finding(Level.INFO, text)


def _sessions(project: Project) -> Iterator[Finding]:
    async def read(store: StateStore) -> tuple[int, list[str]]:
        return len(await store.find(limit=sys.maxsize)), await store.damaged()

    count, damaged = project.access.with_store(read)
    yield Finding(
        Level.OK, f"{count} sessions in the store {project.sessions().store_name!r}, by {project.store_reason}"
    )
    for name in damaged:
        yield Finding(Level.WARNING, f"{name} cannot be read", "restore a copy of it, or remove it")


def _small_file(file: Path, root: Path) -> str | None:
    """Read a file of the project as carefully as a job file; None if it cannot be read."""
    try:
        return read_regular(str(file), [root], limit=MAX_BYTES).decode("utf-8", "replace")
    except (PathRefused, OSError):
        return None


def _guarded(run: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; its failure is a finding too."""
    try:
        return list(run())
    except DeepWorkError as error:
        return [Finding(Level.ERROR, error.message, error.hint)]
    except Exception as error:  # noqa: BLE001 - foreign code
        return [Finding(Level.ERROR, f"the check failed: {type(error).__name__}: {error}")]
