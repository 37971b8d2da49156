"""The commands of `deepwork sessions` that need the store: show, abort and archive the sessions of a project."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta

import click

from deepwork.cli.override import override
from deepwork.cli.verify import verify_sessions
from deepwork.commands.groups import CommandGroup
from deepwork.commands.options import check_text, json_option, path_option, session_id_argument
from deepwork.commands.person import at_terminal
from deepwork.commands.terminal import say, say_json, say_text
from deepwork.engine.interventions import over
from deepwork.engine.resume import resume_call, resume_text
from deepwork.models.history import EventKind
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.ports.state_store import StateStore
from deepwork.project.project import Project
from deepwork.project.session_access import change_session, read_session, with_store
from deepwork.sessions.definition import is_unchanged
from deepwork.sessions.standing import StepState, agent_of, is_unreported, position, reason_of_passage, step_state

reason_option = click.option(
    "--reason", required=True, metavar="TEXT", help="The reason; it is stored with the session."
)

_STATES = {StepState.DONE: "done", StepState.CURRENT: "now"}


others = CommandGroup("sessions")
others.add_command(override)
others.add_command(verify_sessions)


@others.command()
@session_id_argument
@path_option
@json_option
def show(session_id: str, root: str, as_json: bool) -> None:
    """Show one session: its goal, and each step with its outputs."""
    session = read_session(Project(root), session_id)
    if as_json:
        say_json(session.model_dump(mode="json"))
        return
    say(f"{session.session_id}  {session.workflow}  {session.status}  {position(session)}".rstrip())
    say_text(session.goal, "goal     ")
    say(f"started  {session.started_at} by {session.principal}")
    if not is_unchanged(session):
        say("edited   its workflow, steps or reviews are not those with which it was started")
    if session.completed_at:
        say_text(f"{session.completed_at} {session.abort_reason or ''}".rstrip(), "ended    ")
    for step in session.step_progress.values():
        state = _STATES.get(step_state(session, step.step_id), "open")
        unreported = is_unreported(session, step.step_id)
        outputs = json.dumps(step.outputs) if step.outputs else "(never reported)" if unreported else ""
        agent = agent_of(session, step.step_id)
        by = f"  by {agent}" if agent else ""
        say(f"  {state:4}  {step.step_id}  {outputs}{by}".rstrip())
        if step.override_reason:
            say_text(step.override_reason, f"        {_how_reviewed(session, step.step_id)}: ")


@others.command()
@session_id_argument
@path_option
@json_option
def history(session_id: str, root: str, as_json: bool) -> None:
    """Show what happened in a session, in order."""
    session = read_session(Project(root), session_id)
    if as_json:
        say_json([entry.model_dump(mode="json") for entry in session.history])
        return
    for entry in session.history:
        detail = f"  {json.dumps(entry.stored, ensure_ascii=False)}" if entry.stored else ""
        say(f"{entry.at}  {entry.kind}  {entry.step_id or ''}{detail}".rstrip())


@others.command("resume-text")
@session_id_argument
@path_option
@json_option
def print_resume_text(session_id: str, root: str, as_json: bool) -> None:
    """Print what an agent needs to continue a session that it does not remember."""
    project = Project(root)
    session = read_session(project, session_id)
    if not session.is_active:
        raise over(session)
    text = resume_text(project.upgraded(session), project.workspace)
    if as_json:
        say_json({"session_id": session.session_id, "text": text})
        return
    say_text(text)


@others.command()
@session_id_argument
@reason_option
@path_option
@json_option
def abort(session_id: str, reason: str, root: str, as_json: bool) -> None:
    """Abort a session that will not be continued."""
    session = change_session(Project(root), session_id, lambda changes, session: changes.abort(session, reason))
    _say_change(session, "aborted", as_json)


@others.command()
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
    session = change_session(Project(root), session_id, lambda changes, session: changes.pause(session, reason, by))
    _say_change(session, "paused", as_json)


@others.command()
@session_id_argument
@click.option("--text", metavar="TEXT", help="What the agent is told besides; it is stored with the session.")
@path_option
@json_option
def unpause(session_id: str, text: str | None, root: str, as_json: bool) -> None:
    """Let a paused session go on. For people: it needs a terminal."""
    if text is not None:
        check_text(text, "--text")
    by = at_terminal()
    session = change_session(Project(root), session_id, lambda changes, session: changes.unpause(session, text, by))
    _say_change(session, "unpaused", as_json)


@others.command()
@session_id_argument
@reason_option
@path_option
@json_option
def undo(session_id: str, reason: str, root: str, as_json: bool) -> None:
    """Take back the step that was completed last; its files stay, and so does the history."""
    _say_back(_going_back(root, session_id, None, reason), as_json)


@others.command("reopen")
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


@others.command()
@click.option("--older-than", "days", type=click.IntRange(0), default=30, show_default=True, metavar="DAYS")
@click.option("--dry-run", is_flag=True, help="Show what would be archived, and change nothing.")
@path_option
@json_option
def clean(days: int, dry_run: bool, root: str, as_json: bool) -> None:
    """Archive sessions that ended long ago; nothing is deleted."""
    before = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="microseconds")

    async def archive(store: StateStore) -> list[SessionSummary]:
        old = await store.find(before=before, limit=sys.maxsize)
        over = [summary for summary in old if summary.status is not SessionStatus.ACTIVE]
        for summary in [] if dry_run else over:
            await store.archive(summary.session_id)
        return over

    archived = with_store(Project(root), archive)
    if as_json:
        ids = [summary.session_id for summary in archived]
        say_json({"archived": ids, "dry_run": dry_run})
        return
    for summary in archived:
        say(f"{'would archive' if dry_run else 'archived'}  {summary.session_id}")
    say(f"{len(archived)} {'session' if len(archived) == 1 else 'sessions'}.", err=True)


def _how_reviewed(session: Session, step_id: str) -> str:
    """Return how a step was passed according to the history: by a self-review or by an override."""
    reason = reason_of_passage(session, step_id)
    if reason is None or reason.kind == EventKind.OVERRIDE:
        return "overridden before any review" if getattr(reason, "before_review", False) else "review overridden"
    return "self-review passed, by the agent's word"


def _going_back(root: str, session_id: str, step_id: str | None, reason: str, *, accepts: bool = False) -> Session:
    by = at_terminal()
    return change_session(
        Project(root),
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
    say(f"reopened  {session.session_id}  {session.workflow}  now at {session.current_step_id}, {position(session)}")
    say(f"Tell the agent to call {resume_call(session.session_id)}.", err=True)
