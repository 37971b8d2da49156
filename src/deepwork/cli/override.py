"""`deepwork sessions override`: a person lets a step pass without a review."""

from __future__ import annotations

import getpass
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from deepwork.cli.options import json_option, path_option, session_id_argument
from deepwork.cli.stores import load_session, with_sessions
from deepwork.cli.terminal import say, say_json
from deepwork.engine.replies import session_over
from deepwork.errors import ArgumentError, StateError, StrictRefusal
from deepwork.models.sessions import Session
from deepwork.project.project import Project
from deepwork.sessions import transitions
from deepwork.sessions.manager import StateManager
from deepwork.text.blank import is_blank
from deepwork.text.shorten import one_line

MAX_ANCESTORS = 20


@click.command()
@session_id_argument
@click.argument("step_id", metavar="STEP")
@click.option("--reason", required=True, metavar="TEXT", help="The reason; it is stored with the session.")
@path_option
@json_option
def override(session_id: str, step_id: str, reason: str, root: str, as_json: bool) -> None:
    """Let a step pass without a review when it is reported next. For people: it needs a terminal."""
    if is_blank(reason):
        raise ArgumentError("--reason is empty; nothing was changed", hint="Say why no review is needed.")
    permission = {**_where(), "client": None}

    def permit(session: Session) -> Session:
        _check_open(session, step_id)
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        return transitions.permit_override(session, step_id, reason.strip(), permission, now=now)

    async def update(sessions: StateManager) -> Session:
        session = await load_session(await sessions.store(), session_id)
        return await sessions.update(session.session_id, permit, session=session)

    session = with_sessions(Project(root), update)
    if as_json:
        say_json({"session_id": session.session_id, "step_id": step_id, "reason": reason.strip(), **permission})
        return
    say(f"overridden  {session.session_id}  {session.workflow}, step {step_id}: the agent may report it now")


def _check_open(session: Session, step_id: str) -> None:
    if not session.is_active or session.definition is None:
        raise session_over(session)
    if step_id not in session.step_progress or not transitions.is_open(session, step_id):
        raise StateError(
            f"Step {step_id!r} of session {session.session_id!r} cannot be reported now; nothing was changed",
            hint=f"Open now: {', '.join(transitions.open_steps(session))}.",
        )


def _where() -> dict[str, Any]:
    """Say at which terminal and under which programs this runs: what can be known of who it was.

    Raises:
        StrictRefusal: There is no terminal, so nobody can be there.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise StrictRefusal(
            "An override needs a person at a terminal, and stdin and stderr are none; nothing was changed",
            hint="Run the command in a terminal yourself.",
        )
    return {"terminal": os.ttyname(sys.stdin.fileno()), "process": _ancestors(os.getpid()), "user": getpass.getuser()}


def _ancestors(pid: int) -> list[str]:
    """Name this process and those above it, as far as the system tells."""
    names: list[str] = []
    while pid > 1 and len(names) < MAX_ANCESTORS:
        try:
            # The name stands in parentheses and may hold any character, `)` included.
            name, _, rest = Path(f"/proc/{pid}/stat").read_text(errors="replace").partition("(")[2].rpartition(")")
        except OSError:
            break
        names.append(f"{one_line(name, 60)} ({pid})")
        pid = int(rest.split()[1])
    return names or [f"deepwork ({pid})"]
