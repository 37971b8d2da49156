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

import anyio
import click
import importlib_metadata

from deepwork import __version__
from deepwork.cli.project import path_option, probable_root
from deepwork.cli.schema import MODELS, schema_text
from deepwork.cli.terminal import Styled, say, say_json, say_text
from deepwork.config import user_config_file
from deepwork.errors import DeepWorkError
from deepwork.house import House
from deepwork.ports.records import Check, Finding, Level

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
        house = House(root)
    except DeepWorkError as error:
        yield "configuration", [Finding(Level.ERROR, error.message, error.hint)]
        return
    yield "project", _project(house, root)
    yield "configuration", _configuration(house)
    yield "plugins", _plugins(house)
    yield "jobs", _guarded(lambda: _jobs(house))
    yield "sessions", _guarded(lambda: _sessions(house))
    yield "clients", _clients(house.workspace.root)
    for check in _guarded_checks(house):
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


def _project(house: House, given: str) -> Iterator[Finding]:
    root = house.workspace.root
    why = "--path" if given != "." else "the current folder"
    if os.environ.get("DEEPWORK_PROJECT") == given:
        why = "DEEPWORK_PROJECT"
    yield Finding(Level.OK, f"root {root} (from {why})")
    if house.workspace.home.is_dir():
        return
    meant = probable_root(root)
    if meant:
        yield Finding(Level.WARNING, f"it has no .deepwork, but {meant} has", f"deepwork doctor --path {meant}")
    else:
        yield Finding(Level.INFO, "it has no .deepwork", "deepwork init")


def _configuration(house: House) -> Iterator[Finding]:
    for file in (user_config_file(os.environ), house.workspace.config_file):
        there = "read" if file.exists() else "not there, which is fine"
        yield Finding(Level.OK if file.exists() else Level.INFO, f"{file}: {there}")
    for label in house.trust.refused():
        yield Finding(
            Level.WARNING, f"{label} has no effect: the project asks for it, and it is not trusted", "deepwork trust"
        )
    for kind in MODELS:
        file = house.workspace.home / "schema" / f"{kind}.schema.json"
        if file.exists() and file.read_text(encoding="utf-8", errors="replace") != schema_text(kind):
            yield Finding(Level.WARNING, f"{house.workspace.shown(file)} is of another release", "deepwork init")


def _plugins(house: House) -> Iterator[Finding]:
    offers, errors = house.offers()
    for status in house.plugins.statuses:
        if status.status == "failed":
            cure = f"install a release of {status.plugin.distribution} that fits, or name it in plugins.block"
            yield Finding(Level.WARNING, f"{status.plugin} is left out: {status.cause}", cure)
        elif not status.plugin.builtin:
            adds = [f"{kind} {name}" for by, kind, name in offers if by == status.plugin]
            what = ", ".join(adds) if status.status == "active" else status.status
            yield Finding(Level.OK, f"{status.plugin}: {what or 'adds nothing'}")
    for error in errors:
        yield Finding(Level.ERROR, error.message, error.hint)
    if not errors:
        active = sum(status.status == "active" for status in house.plugins.statuses)
        yield Finding(Level.OK, f"{active} plugins active, the core's own included")


def _jobs(house: House) -> Iterator[Finding]:
    listing = house.catalogue().list()
    yield Finding(Level.OK, f"{len(listing.jobs)} jobs can be started")
    for _, error in listing.errors:
        yield Finding(Level.ERROR, error.message, f"deepwork jobs check {error.job_dir}")
    for _, job in listing.jobs:
        for warning in job.warnings:
            yield Finding(Level.WARNING, warning, f"deepwork jobs check {job.job_dir}")
    for one in listing.shadowed:
        yield Finding(Level.INFO, f"job {one.job.name!r} of {one.source} is hidden by that of {one.by}")


def _sessions(house: House) -> Iterator[Finding]:
    async def read() -> tuple[int, list[str]]:
        async with house.store().open(house.workspace) as store:
            return len(await store.find(limit=sys.maxsize)), await store.damaged()

    count, damaged = anyio.run(read)
    yield Finding(Level.OK, f"{count} sessions in the store {house.config.state.store!r}")
    for name in damaged:
        yield Finding(Level.WARNING, f"{name} could not be read and was set aside", "look into it, then remove it")
    folder = house.workspace.state_dir
    if folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) & 0o077:
        yield Finding(Level.WARNING, f"{house.workspace.shown(folder)} can be read by others", f"chmod 700 {folder}")


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


def _guarded_checks(house: House) -> list[Check]:
    try:
        return [one.item for one in house.checks()]
    except DeepWorkError:
        return []  # named under `plugins`


def _guarded(run: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check; one that fails is itself a finding."""
    try:
        return list(run())
    except DeepWorkError as error:
        return [Finding(Level.ERROR, error.message, error.hint)]
    except Exception as error:  # noqa: BLE001 - foreign code
        return [Finding(Level.ERROR, f"the check failed: {type(error).__name__}: {error}")]
