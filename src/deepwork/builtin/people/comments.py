"""`deepwork gate comments` and `deepwork gate prune`: what people say of reported files, and what is kept of these."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from deepwork import __version__
from deepwork.api import Project, project_at
from deepwork.builtin.people.items import run
from deepwork.builtin.people.show import show
from deepwork.commands.options import json_option, path_option, session_id_argument
from deepwork.commands.terminal import say, say_json
from deepwork.documents.sarif import SarifResult, sarif_log
from deepwork.errors import StateError
from deepwork.paths.contents import MAX_DAYS
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.text import one_line, visible

OPEN = ("open", "changed", "outdated")
RULES = {
    "must": {"says": "A person asks for a change.", "cure": "Change it, or answer in notes.", "level": "error"},
    "could": {"says": "A person suggests a change.", "cure": "Change it, or answer in notes.", "level": "warning"},
}


@click.group()
def gate() -> None:
    """The core's group, to which these commands are added."""


gate.add_command(show)


@gate.command(epilog="Example: deepwork gate comments 3f2a --format github")
@session_id_argument
@click.argument("step_id", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "github", "sarif"]),
    default="md",
    show_default=True,
    help="md for people, github for annotations of GitHub Actions, sarif for editors and forges.",
)
@path_option
def comments(session_id: str, step_id: str | None, form: str, root: str) -> None:
    """Print the open comments of people on reported files, each at its place in the newest attempt."""
    project = project_at(root)
    with stdout_on_stderr():  # stores are code of plugins
        found = run(project, lambda: _open_comments(project, session_id, step_id))
    if form == "sarif":
        say_json(sarif_log(map(_result, found), RULES, root=project.root, version=__version__))
    for comment in found if form != "sarif" else ():
        say(_annotation(comment) if form == "github" else _item(comment))
    if not found:
        say("No comment is open.", err=True)


@gate.command()
@click.option(
    "--older-than",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=float(MAX_DAYS),
    help="Remove what was kept last before so many days (default: 30).",
)
@path_option
@json_option
def prune(older_than: float, root: str, as_json: bool) -> None:
    """Remove contents and drafts that no open step needs."""
    project = project_at(root)
    with stdout_on_stderr():
        removed = run(project, lambda: project.pieces().prune(older_than=older_than))
    if as_json:
        say_json({"removed": removed})
        return
    say(f"{removed} {'file' if removed == 1 else 'files'} removed")


async def _open_comments(project: Project, session_id: str, step_id: str | None) -> list[dict[str, Any]]:
    session = await project.interventions().named(session_id)
    if step_id is not None and step_id not in session.step_progress:
        raise StateError(f"Session {session.session_id!r} has not begun a step {step_id!r}")
    found: list[dict[str, Any]] = []
    for name in [*session.step_progress] if step_id is None else [step_id]:
        piece = (await project.pieces().piece(session.session_id, name)).as_json()
        found += [comment for comment in piece["comments"] if comment["state"] in OPEN]
    return found


def _text(comment: dict[str, Any]) -> str:
    outdated = " (outdated)" if comment["state"] == "outdated" else ""
    return f"{comment['text'] or 'A replacement is suggested.'}{outdated}"


def _result(comment: dict[str, Any]) -> SarifResult:
    level: Literal["error", "warning"] = "error" if comment["must"] else "warning"
    place = comment["place"]
    return SarifResult(
        rule="must" if comment["must"] else "could",
        level=level,
        message=_text(comment),
        file=Path(comment["file"]),
        line=place["line"] if place else None,
        end_line=place["end_line"] if place else None,
    )


def _annotation(comment: dict[str, Any]) -> str:
    """Return an annotation of GitHub Actions; nothing in it can begin another one."""
    place = comment["place"]
    line = f",line={place['line']}" if place else ""
    level = "error" if comment["must"] else "notice"
    return f"::{level} file={_property(comment['file'])}{line}::{_escaped(_text(comment))}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _item(comment: dict[str, Any]) -> str:
    place = comment["place"]
    line = f":{place['line']}" if place else ""
    must = "must" if comment["must"] else "could"
    return f"- [ ] `{one_line(comment['file'])}{line}` {comment['id']}, {must}: {visible(_text(comment))}"
