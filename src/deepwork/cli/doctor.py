"""`deepwork doctor`: what is right, what is wrong, and the command that fixes it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import importlib_metadata

from deepwork import __version__
from deepwork.cli.offers import examine_plugins
from deepwork.cli.options import json_option, path_option, plugins_dir_option, probable_root
from deepwork.cli.schema import MODELS, schema_text
from deepwork.cli.stores import with_store
from deepwork.cli.terminal import Styled, say, say_json, say_text
from deepwork.errors import DeepWorkError
from deepwork.loading.faults import findings_of, stdout_on_stderr
from deepwork.loading.manager import PluginStatus
from deepwork.ports.records import Finding, Level
from deepwork.ports.state_store import StateStore
from deepwork.project.config import user_config_file
from deepwork.project.offers import Offers
from deepwork.project.project import Project

MARKS = {Level.OK: ("✓", "green"), Level.INFO: ("·", None), Level.WARNING: ("!", "yellow"), Level.ERROR: ("✗", "red")}
CLIENT_FILES = {
    ".mcp.json": "mcpServers",
    ".cursor/mcp.json": "mcpServers",
    ".gemini/settings.json": "mcpServers",
    ".vscode/mcp.json": "servers",
}


@click.command(epilog="Exits with 1 if there is an error; warnings and information do not count.")
@path_option
@plugins_dir_option
@json_option
def doctor(root: str, plugins_dir: str | None, as_json: bool) -> int:
    """Check the installation and this project."""
    with stdout_on_stderr():
        groups = _without_repeated_errors(_examine(root, plugins_dir))
    broken = any(finding.level is Level.ERROR for findings in groups.values() for finding in findings)
    if as_json:
        report = [
            {"check": name, "level": finding.level, "text": finding.text, "cure": finding.cure}
            for name, findings in groups.items()
            for finding in findings
        ]
        say_json({"ok": not broken, "findings": report})
        return int(broken)
    for name, findings in groups.items():
        say(Styled(name, bold=True))
        for finding in findings:
            say_text(finding.text, "  ", Styled(*MARKS[finding.level]), " ")
            if finding.cure:
                say_text(finding.cure, "      -> ")
    return int(broken)


def _examine(root: str, plugins_dir: str | None) -> Iterator[tuple[str, Iterable[Finding]]]:
    yield "environment", _environment()
    try:
        project = Project(root, plugins_dir=plugins_dir)
    except DeepWorkError as error:
        yield "configuration", [Finding(Level.ERROR, error.message, error.hint)]
        return
    offers = examine_plugins(project)  # before anything is said of trust: plugins name the settings that need it
    yield "project", _project(project, root)
    yield "configuration", _configuration(project)
    yield "plugins", _plugins(project, offers)
    yield "jobs", _guarded(lambda: _jobs(project))
    yield "sessions", _guarded(lambda: _sessions(project))
    yield "clients", _clients(project.workspace.root)
    for check in project.checks.items:  # plugins whose hook failed are listed under `plugins`
        yield check.item.name, findings_of(check.item, check.by)


def _without_repeated_errors(groups: Iterable[tuple[str, Iterable[Finding]]]) -> dict[str, list[Finding]]:
    """Run the checks, and report each error once, although several checks may meet it."""
    texts: set[str] = set()
    new: dict[str, list[Finding]] = {}
    for name, findings in groups:
        new[name] = []
        for finding in findings:
            if finding.level is not Level.ERROR or finding.text not in texts:
                new[name].append(finding)
            texts.add(finding.text)
    return new


def _environment() -> Iterator[Finding]:
    yield Finding(Level.OK, f"deepwork {__version__}, Python {platform.python_version()} ({sys.executable})")
    names = ("fastmcp", "mcp", "pydantic", "pluggy", "click", "pyyaml")
    yield Finding(Level.INFO, ", ".join(f"{name} {importlib_metadata.version(name)}" for name in names))


def _project(project: Project, path: str) -> Iterator[Finding]:
    root = project.workspace.root
    source = "--path" if path != "." else "the current folder"
    if os.environ.get("DEEPWORK_PROJECT") == path:
        source = "DEEPWORK_PROJECT"
    yield Finding(Level.OK, f"root {root} (from {source})")
    if project.workspace.home.is_dir():
        return
    parent = probable_root(root)
    if parent:
        yield Finding(Level.WARNING, f"it has no .deepwork, but {parent} has", f"deepwork doctor --path {parent}")
    else:
        yield Finding(Level.INFO, "it has no .deepwork", "deepwork init")


def _configuration(project: Project) -> Iterator[Finding]:
    for file in (user_config_file(os.environ), project.workspace.config_file):
        exists = file.exists()
        state = "read" if exists else "does not exist, which is fine"
        yield Finding(Level.OK if exists else Level.INFO, f"{file}: {state}")
    for label in project.trust.refused():
        yield Finding(Level.WARNING, f"{label} has no effect until you approve it", "deepwork trust")
    for text in project.unknown_sections():
        yield Finding(Level.WARNING, text, "correct the name in the configuration, or install the plugin")
    for kind in MODELS:
        file = project.workspace.home / "schema" / f"{kind}.schema.json"
        if file.exists() and file.read_text(encoding="utf-8", errors="replace") != schema_text(kind):
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
    adds = [f"{kind} {name}" for by, kind, name in offers.items if by == status.plugin]
    errors = [failure.item for failure in offers.failures if failure.by == status.plugin]
    for error in errors:
        by_name = error.message if str(status.plugin) in error.message else f"{status.plugin}: {error.message}"
        yield Finding(Level.ERROR, by_name, error.hint)
    if adds or not errors:
        state = ", ".join(adds) or "adds nothing" if status.status == "active" else status.status
        yield Finding(Level.INFO if errors else Level.OK, f"{status.plugin}: {state}")


def _jobs(project: Project) -> Iterator[Finding]:
    listing = project.catalogue.list()
    yield Finding(Level.OK, f"{len(listing.jobs)} jobs can be started")
    for _, error in listing.errors:
        yield Finding(Level.ERROR, error.message, error.hint or f"deepwork jobs check {error.job_dir}")
    for _, job in listing.jobs:
        for warning in job.warnings:
            yield Finding(Level.WARNING, warning, f"deepwork jobs check {job.job_dir}")
    for hidden in listing.shadowed:
        yield Finding(Level.INFO, f"job {hidden.job.name!r} of {hidden.source} is hidden by that of {hidden.by}")


def _sessions(project: Project) -> Iterator[Finding]:
    async def read(store: StateStore) -> tuple[int, list[str]]:
        return len(await store.find(limit=sys.maxsize)), await store.damaged()

    count, damaged = with_store(project, read)
    yield Finding(Level.OK, f"{count} sessions in the store {project.config.state.store!r}")
    for name in damaged:
        yield Finding(Level.WARNING, f"{name} could not be read and was set aside", "look at it, then remove it")
    folder = project.workspace.state_dir
    if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        yield Finding(Level.WARNING, f"{project.workspace.shown(folder)} can be read by others", f"chmod 700 {folder}")


def _clients(root: Path) -> Iterator[Finding]:
    entries = [
        (name, server, entry)
        for name, key in CLIENT_FILES.items()
        for server, entry in _entries(root / name, key).items()
    ]
    for name, server, entry in entries:
        command = str(entry.get("command"))
        program = shutil.which(str(root / command) if os.path.dirname(command) else command)
        if program:
            yield Finding(Level.OK, f"{name}: {server!r} starts {command}")
        else:
            text = f"{name}: {server!r} cannot start, because there is no such program: {command}"
            yield Finding(Level.WARNING, text, "give its full path")
    if not entries:
        yield Finding(Level.INFO, "no client file in this project starts deepwork", "deepwork init prints the lines")


def _entries(file: Path, key: str) -> dict[str, dict[str, Any]]:
    """Return the entries that start deepwork; a file that cannot be read is reported by its client, not here."""
    try:
        servers = json.loads(file.read_text(encoding="utf-8"))[key]
        return {name: entry for name, entry in servers.items() if "deepwork" in json.dumps(entry)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _guarded(run: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; its failure is a finding too."""
    try:
        return list(run())
    except DeepWorkError as error:
        return [Finding(Level.ERROR, error.message, error.hint)]
    except Exception as error:  # noqa: BLE001 - foreign code
        return [Finding(Level.ERROR, f"the check failed: {type(error).__name__}: {error}")]
