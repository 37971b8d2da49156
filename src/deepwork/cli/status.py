"""`deepwork status`: what is open, where it stands, and what waits."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from deepwork.cli.open_sessions import open_sessions, waiting_count
from deepwork.cli.options import json_option, path_option
from deepwork.cli.terminal import say, say_json
from deepwork.clients.open_sessions import OpenSession


@click.command(epilog="Example of a status line: deepwork status --statusline --path /projects/demo")
@path_option
@click.option(
    "--statusline", is_flag=True, help="Print one line for the status line of a client; nothing if nothing is open."
)
@json_option
def status(root: str, statusline: bool, as_json: bool) -> None:
    """Show what is open in this project, where it stands, and what waits for a person."""
    sessions = open_sessions(Path(os.path.realpath(root))).all()
    if statusline and not as_json:
        if sessions:
            say(_short(sessions))
        return
    waiting = waiting_count(root)
    if as_json:
        say_json({"sessions": [asdict(session) for session in sessions], "inbox": {"count": waiting}})
        return
    for session in sessions:
        _show(session)
    if not sessions:
        say("Nothing is open.", err=True)
    if waiting:
        say(f"{waiting} {'thing waits' if waiting == 1 else 'things wait'} for a person: deepwork inbox")


def _show(session: OpenSession) -> None:
    waits = "  waits for a person" if session.waits_for_person else ""
    where = f"{session.step_id} ({session.position})" if session.position else session.step_id
    say(f"{session.session_id}  {session.workflow} at {where}{waits}: {session.goal}")


def _short(sessions: list[OpenSession]) -> str:
    first = sessions[0]
    waiting = sum(session.waits_for_person for session in sessions)
    more = f" +{len(sessions) - 1}" if len(sessions) > 1 else ""
    waits = " (waits for you)" if first.waits_for_person else ""
    others = f" ({waiting} wait for you)" if waiting and not first.waits_for_person else ""
    return f"{first.workflow} @ {first.step_id}{waits}{more}{others}"
