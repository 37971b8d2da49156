"""`deepwork sessions override`: a person lets a step pass without a review."""

from __future__ import annotations

import click

from deepwork.commands.options import check_text, json_option, path_option, session_id_argument
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import say, say_json
from deepwork.project.project import Project
from deepwork.project.session_access import change_session


@click.command()
@session_id_argument
@click.argument("step_id", metavar="STEP")
@click.option("--reason", required=True, metavar="TEXT", help="The reason; it is stored with the session.")
@path_option
@json_option
def override(session_id: str, step_id: str, reason: str, root: str, as_json: bool) -> None:
    """Let a step pass without a review when it is reported next. For people: it needs a terminal."""
    check_text(reason, "--reason", "Say why no review is needed.")
    by = at_terminal()
    session = change_session(
        Project(root), session_id, lambda changes, session: changes.override(session, step_id, reason, by)
    )
    if as_json:
        say_json({"session_id": session.session_id, "step_id": step_id, "reason": reason.strip(), **by.recorded()})
        return
    say(f"overridden  {session.session_id}  {session.workflow}, step {step_id}: the agent may report it now")
