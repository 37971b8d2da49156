"""`deepwork sessions`: show, abort and archive the sessions of a project."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta

import click

from deepwork.cli.options import json_option, path_option, session_id_argument
from deepwork.cli.stores import NEWEST, load_session, read_session, with_sessions, with_store
from deepwork.cli.terminal import say, say_json, say_text
from deepwork.engine.replies import session_over
from deepwork.engine.resume import age, resume_text
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.ports.state_store import StateStore
from deepwork.project.project import Project
from deepwork.sessions import transitions
from deepwork.sessions.manager import StateManager
from deepwork.sessions.upgrade import upgraded


@click.group(epilog="Example: deepwork sessions resume-text 3f2a  (the beginning of an id is enough)")
def sessions() -> None:
    """Show, abort or archive the sessions of this project."""


@sessions.command("list")
@path_option
@click.option("--all", "everything", is_flag=True, help=f"All sessions, not the {NEWEST} newest.")
@click.option(
    "--status", type=click.Choice([item.value for item in SessionStatus]), help="Only sessions with this status."
)
@json_option
def list_sessions(root: str, everything: bool, status: str | None, as_json: bool) -> None:
    """List sessions, the last changed first."""
    status_filter = SessionStatus(status) if status else None
    limit = sys.maxsize if everything else NEWEST
    summaries, damaged = with_store(Project(root), lambda store: _find(store, status_filter, limit))
    if as_json:
        say_json({"sessions": [summary.model_dump(mode="json") for summary in summaries], "damaged": damaged})
        return
    now = datetime.now(UTC)
    for summary in summaries:
        name = f"{summary.job_name}/{summary.workflow_name}"
        when = f"{age(summary.updated_at, now)} ago"
        goal = " ".join(summary.goal.split())[:60]
        say(f"{summary.session_id}  {summary.status:9}  {when:>10}  {name} at {summary.step_id}: {goal}")
    for name in damaged:
        say(f"damaged   {name}")
    if not (summaries or damaged):
        say("No sessions.", err=True)


@sessions.command()
@session_id_argument
@path_option
@json_option
def show(session_id: str, root: str, as_json: bool) -> None:
    """Show one session: its goal, and each step with its outputs."""
    session = read_session(Project(root), session_id)
    if as_json:
        say_json(session.model_dump(mode="json"))
        return
    say(f"{session.session_id}  {session.workflow}  {session.status}")
    say_text(session.goal, "goal     ")
    say(f"started  {session.started_at} by {session.principal}")
    if session.completed_at:
        say_text(f"{session.completed_at} {session.abort_reason or ''}".rstrip(), "ended    ")
    for step in session.step_progress.values():
        is_current = session.is_active and step.step_id == session.current_step_id
        state = "done" if step.completed_at else "now" if is_current else "open"
        say(f"  {state:4}  {step.step_id}  {json.dumps(step.outputs) if step.outputs else ''}".rstrip())
        if step.override_reason:
            say_text(step.override_reason, "        review overridden: ")


@sessions.command()
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
        detail = f"  {json.dumps(entry.detail, ensure_ascii=False)}" if entry.detail else ""
        say(f"{entry.at}  {entry.kind}  {entry.step_id or ''}{detail}".rstrip())


@sessions.command("resume-text")
@session_id_argument
@path_option
@json_option
def print_resume_text(session_id: str, root: str, as_json: bool) -> None:
    """Print what an agent needs to continue a session that it does not remember."""
    project = Project(root)
    session = read_session(project, session_id)
    if not session.is_active:
        raise session_over(session)
    text = resume_text(upgraded(session, project.catalogue, project.workspace.root), project.workspace)
    if as_json:
        say_json({"session_id": session.session_id, "text": text})
        return
    say_text(text)


@sessions.command()
@session_id_argument
@click.option("--reason", required=True, metavar="TEXT", help="The reason; it is stored with the session.")
@path_option
@json_option
def abort(session_id: str, reason: str, root: str, as_json: bool) -> None:
    """Abort a session that nobody will continue."""

    def end(session: Session) -> Session:
        if not session.is_active:
            raise session_over(session)
        reply = transitions.recorded_abort(session, reason, None)
        return transitions.abort(session, reply, now=datetime.now(UTC).isoformat(timespec="microseconds"))

    async def update(sessions: StateManager) -> Session:
        session = await load_session(await sessions.store(), session_id)
        return await sessions.update(session.session_id, end, session=session)

    session = with_sessions(Project(root), update)
    if as_json:
        say_json(session.summary().model_dump(mode="json"))
        return
    say(f"aborted  {session.session_id}  {session.workflow}")


@sessions.command()
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


async def _find(store: StateStore, status: SessionStatus | None, limit: int) -> tuple[list[SessionSummary], list[str]]:
    return await store.find(status=status, limit=limit), await store.damaged()
