"""`deepwork doctor`: what is right, what is wrong, and the command that cures it."""

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
from deepwork.cli.options import path_option, probable_root
from deepwork.cli.schema import MODELS, schema_text
from deepwork.cli.sessions import with_store
from deepwork.cli.terminal import Styled, say, say_json, say_text
from deepwork.errors import DeepWorkError
from deepwork.ports.records import Check, Finding, Level
from deepwork.ports.state_store import StateStore
from deepwork.project.config import user_config_file
from deepwork.project.offers import list_offers
from deepwork.project.project import Project

MARKS = {Level.OK: ("✓", "green"), Level.INFO: ("·", None), Level.WARNING: ("!", "yellow"), Level.ERROR: ("✗", "red")}
CLIENT_FILES = {
    ".mcp.json": "mcpServers",
    ".cursor/mcp.json": "mcpServers",
    ".gemini/settings.json": "mcpServers",
    ".vscode/mcp.json": "servers",
}


@click.command(epilog="Exit code 1 when something is broken; warnings and information are not.")
@path_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(root: str, as_json: bool) -> int:
    """Check the installation and this project."""
    told: set[str] = set()
    groups = {name: [one for one in findings if _is_news(one, told)] for name, findings in _examine(root)}
    broken = any(one.level is Level.ERROR for findings in groups.values() for one in findings)
    if as_json:
        checks = [
            {"check": name, "level": one.level, "text": one.text, "cure": one.cure}
            for name, findings in groups.items()
            for one in findings
        ]
        say_json({"ok": not broken, "findings": checks})
        return int(broken)
    for name, findings in groups.items():
        say(Styled(name, bold=True))
        for one in findings:
            say_text(one.text, "  ", Styled(*MARKS[one.level]), " ")
            if one.cure:
                say_text(one.cure, "      -> ")
    return int(broken)


def _examine(root: str) -> Iterator[tuple[str, Iterable[Finding]]]:
    yield "environment", _environment()
    try:
        project = Project(root)
    except DeepWorkError as error:
        yield "configuration", [Finding(Level.ERROR, error.message, error.hint)]
        return
    yield "project", _project(project, root)
    yield "configuration", _configuration(project)
    yield "plugins", _plugins(project)
    yield "jobs", _guarded(lambda: _jobs(project))
    yield "sessions", _guarded(lambda: _sessions(project))
    yield "clients", _clients(project.workspace.root)
    for check in _guarded_checks(project):
        yield check.name, _guarded(check.run)


def _is_news(finding: Finding, told: set[str]) -> bool:
    """Say each error once, though several checks may meet it."""
    is_new = finding.level is not Level.ERROR or finding.text not in told
    told.add(finding.text)
    return is_new


def _environment() -> Iterator[Finding]:
    yield Finding(Level.OK, f"deepwork {__version__}, Python {platform.python_version()} ({sys.executable})")
    names = ("fastmcp", "mcp", "pydantic", "pluggy", "click", "pyyaml")
    yield Finding(Level.INFO, ", ".join(f"{name} {importlib_metadata.version(name)}" for name in names))


def _project(project: Project, given: str) -> Iterator[Finding]:
    root = project.workspace.root
    why = "--path" if given != "." else "the current folder"
    if os.environ.get("DEEPWORK_PROJECT") == given:
        why = "DEEPWORK_PROJECT"
    yield Finding(Level.OK, f"root {root} (from {why})")
    if project.workspace.home.is_dir():
        return
    meant = probable_root(root)
    if meant:
        yield Finding(Level.WARNING, f"it has no .deepwork, but {meant} has", f"deepwork doctor --path {meant}")
    else:
        yield Finding(Level.INFO, "it has no .deepwork", "deepwork init")


def _configuration(project: Project) -> Iterator[Finding]:
    for file in (user_config_file(os.environ), project.workspace.config_file):
        there = "read" if file.exists() else "not there, which is fine"
        yield Finding(Level.OK if file.exists() else Level.INFO, f"{file}: {there}")
    for label in project.trust.refused():
        yield Finding(
            Level.WARNING, f"{label} has no effect: the project asks for it, and it is not trusted", "deepwork trust"
        )
    for kind in MODELS:
        file = project.workspace.home / "schema" / f"{kind}.schema.json"
        if file.exists() and file.read_text(encoding="utf-8", errors="replace") != schema_text(kind):
            yield Finding(Level.WARNING, f"{project.workspace.shown(file)} is of another release", "deepwork init")


def _plugins(project: Project) -> Iterator[Finding]:
    offers = list_offers(project)
    for status in project.plugins.statuses:
        if status.status == "failed":
            cure = f"install a release of {status.plugin.distribution} that fits, or name it in plugins.block"
            yield Finding(Level.WARNING, f"{status.plugin} is left out: {status.cause}", cure)
        elif not status.plugin.builtin:
            adds = [f"{kind} {name}" for by, kind, name in offers.items if by == status.plugin]
            what = ", ".join(adds) if status.status == "active" else status.status
            yield Finding(Level.OK, f"{status.plugin}: {what or 'adds nothing'}")
    for error in offers.errors:
        yield Finding(Level.ERROR, error.message, error.hint)
    if not offers.errors:
        active = sum(status.status == "active" for status in project.plugins.statuses)
        yield Finding(Level.OK, f"{active} plugins active, the core's own included")


def _jobs(project: Project) -> Iterator[Finding]:
    listing = project.catalogue.list()
    yield Finding(Level.OK, f"{len(listing.jobs)} jobs can be started")
    for _, error in listing.errors:
        yield Finding(Level.ERROR, error.message, f"deepwork jobs check {error.job_dir}")
    for _, job in listing.jobs:
        for warning in job.warnings:
            yield Finding(Level.WARNING, warning, f"deepwork jobs check {job.job_dir}")
    for one in listing.shadowed:
        yield Finding(Level.INFO, f"job {one.job.name!r} of {one.source} is hidden by that of {one.by}")


def _sessions(project: Project) -> Iterator[Finding]:
    async def read(store: StateStore) -> tuple[int, list[str]]:
        return len(await store.find(limit=sys.maxsize)), await store.damaged()

    count, damaged = with_store(project, read)
    yield Finding(Level.OK, f"{count} sessions in the store {project.config.state.store!r}")
    for name in damaged:
        yield Finding(Level.WARNING, f"{name} could not be read and was set aside", "look into it, then remove it")
    folder = project.workspace.state_dir
    if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        yield Finding(Level.WARNING, f"{project.workspace.shown(folder)} can be read by others", f"chmod 700 {folder}")


def _clients(root: Path) -> Iterator[Finding]:
    seen = 0
    for name, key in CLIENT_FILES.items():
        for server, entry in _entries(root / name, key):
            seen += 1
            command = str(entry.get("command"))
            found = shutil.which(command) if os.path.dirname(command) == "" else shutil.which(str(root / command))
            level = Level.OK if found else Level.WARNING
            what = "starts" if found else "cannot start, for there is no such program:"
            yield Finding(level, f"{name}: {server!r} {what} {command}", None if found else "give its full path")
    if not seen:
        yield Finding(Level.INFO, "no client's file in this project starts deepwork", "deepwork init prints the lines")


def _entries(file: Path, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Find entries that start deepwork; a file that cannot be read is the client's business."""
    try:
        servers = json.loads(file.read_text(encoding="utf-8"))[key]
        found = [(name, entry) for name, entry in servers.items() if "deepwork" in json.dumps(entry)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    yield from found


def _guarded_checks(project: Project) -> list[Check]:
    return [provided.item for provided in project.checks.items]  # errors are named under `plugins`


def _guarded(run: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; one that fails is itself a finding."""
    try:
        return list(run())
    except DeepWorkError as error:
        return [Finding(Level.ERROR, error.message, error.hint)]
    except Exception as error:  # noqa: BLE001 - foreign code
        return [Finding(Level.ERROR, f"the check failed: {type(error).__name__}: {error}")]
