"""`deepwork sessions override`: a person lets a step pass without a review."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Any

import click

from deepwork.cli.options import json_option, path_option, session_id_argument
from deepwork.cli.stores import change_session
from deepwork.cli.terminal import say, say_json
from deepwork.errors import ArgumentError, StrictRefusal
from deepwork.project.project import Project
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
    session = change_session(
        Project(root), session_id, lambda changes, session: changes.override(session, step_id, reason, permission)
    )
    if as_json:
        say_json({"session_id": session.session_id, "step_id": step_id, "reason": reason.strip(), **permission})
        return
    say(f"overridden  {session.session_id}  {session.workflow}, step {step_id}: the agent may report it now")


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
