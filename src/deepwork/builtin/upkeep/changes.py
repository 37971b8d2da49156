"""`deepwork sessions abort`, `override`, `pause`, `unpause`, `undo` and `reopen`: what people do to a session."""

from __future__ import annotations

import click

from deepwork.api import Session, project_at
from deepwork.commands.options import check_text, json_option, path_option, session_id_argument
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import say, say_json
from deepwork.models.standing import resume_call

reason_option = click.option(
    "--reason", required=True, metavar="TEXT", help="The reason; it is stored with the session."
)


@click.command()
@session_id_argument
@reason_option
@path_option
@json_option
def abort(session_id: str, reason: str, root: str, as_json: bool) -> None:
    """Abort a session that will not be continued."""
    session = project_at(root).change_session(session_id, lambda changes, session: changes.abort(session, reason))
    _say_change(session, "aborted", as_json)


@click.command()
@session_id_argument
@click.argument("step_id", metavar="STEP")
@reason_option
@path_option
@json_option
def override(session_id: str, step_id: str, reason: str, root: str, as_json: bool) -> None:
    """Let a step pass without a review when it is reported next. For people: it needs a terminal."""
    check_text(reason, "--reason", "Say why no review is needed.")
    by = at_terminal()
    session = project_at(root).change_session(
        session_id, lambda changes, session: changes.override(session, step_id, reason, by)
    )
    if as_json:
        say_json({"session_id": session.session_id, "step_id": step_id, "reason": reason.strip(), **by.recorded()})
        return
    say(f"overridden  {session.session_id}  {session.workflow}, step {step_id}: the agent may report it now")


@click.command()
@session_id_argument
@reason_option
@path_option
@json_option
def pause(session_id: str, reason: str, root: str, as_json: bool) -> None:
    """Let no step of a session be finished until `unpause`. For people: it needs a terminal.

    The agent is told so at its next call of any tool, if its client is connected with hooks.
    """
    check_text(reason, "--reason")
    by = at_terminal()
    session = project_at(root).change_session(session_id, lambda changes, session: changes.pause(session, reason, by))
    _say_change(session, "paused", as_json)


@click.command()
@session_id_argument
@click.option("--text", metavar="TEXT", help="What the agent is told besides; it is stored with the session.")
@path_option
@json_option
def unpause(session_id: str, text: str | None, root: str, as_json: bool) -> None:
    """Let a paused session go on. For people: it needs a terminal."""
    if text is not None:
        check_text(text, "--text")
    by = at_terminal()
    session = project_at(root).change_session(session_id, lambda changes, session: changes.unpause(session, text, by))
    _say_change(session, "unpaused", as_json)


@click.command()
@session_id_argument
@reason_option
@path_option
@json_option
def undo(session_id: str, reason: str, root: str, as_json: bool) -> None:
    """Take back the step that was completed last; its files stay, and so does the history."""
    _say_back(_going_back(root, session_id, None, reason), as_json)


@click.command("reopen")
@session_id_argument
@click.argument("step_id", metavar="STEP")
@reason_option
@click.option(
    "--accept-definition",
    "accepts",
    is_flag=True,
    help="Go on with a workflow that was edited where the session is stored. For people: it needs a terminal.",
)
@path_option
@json_option
def reopen_step(session_id: str, step_id: str, reason: str, accepts: bool, root: str, as_json: bool) -> None:
    """Make a step the current one again, also of a session that is over; later steps are open again."""
    _say_back(_going_back(root, session_id, step_id, reason, accepts=accepts), as_json)


def _going_back(root: str, session_id: str, step_id: str | None, reason: str, *, accepts: bool = False) -> Session:
    by = at_terminal()
    return project_at(root).change_session(
        session_id,
        lambda changes, session: changes.go_back(session, step_id, reason, by, accept_definition=accepts),
    )


def _say_change(session: Session, word: str, as_json: bool) -> None:
    if as_json:
        say_json(session.summary().model_dump(mode="json"))
        return
    say(f"{word}  {session.session_id}  {session.workflow}")


def _say_back(session: Session, as_json: bool) -> None:
    if as_json:
        say_json(session.summary().model_dump(mode="json"))
        return
    say(f"reopened  {session.session_id}  {session.workflow}  now at {session.current_step_id}, {session.position}")
    say(f"Tell the agent to call {resume_call(session.session_id)}.", err=True)
