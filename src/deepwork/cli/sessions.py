"""`deepwork sessions`: what runs, what ran, and how to go on with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import anyio
import click

from deepwork.cli.options import CommandT, path_option
from deepwork.cli.terminal import say, say_json, say_text
from deepwork.engine.replies import session_over
from deepwork.engine.resume import age, resume_text
from deepwork.errors import CorruptSession, StateError, UnknownSession
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.ports.state_store import StateStore
from deepwork.project.project import Project
from deepwork.sessions import transitions
from deepwork.sessions.manager import StateManager
from deepwork.sessions.upgrade import upgraded

NEWEST = 10

ResultT = TypeVar("ResultT")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def about_one(command: CommandT) -> CommandT:
    """Add what every command about one session takes: its id, `--path` and `--json`."""
    return click.argument("session_id")(path_option(json_option(command)))


@click.group(epilog="Example: deepwork sessions resume-text 3f2a  (the beginning of an id will do)")
def sessions() -> None:
    """Look at the runs of this project, and end or archive them."""


@sessions.command("list")
@path_option
@click.option("--all", "everything", is_flag=True, help=f"All sessions, not the {NEWEST} newest.")
@click.option("--status", type=click.Choice([one.value for one in SessionStatus]), help="Only sessions of this status.")
@json_option
def list_sessions(root: str, everything: bool, status: str | None, as_json: bool) -> None:
    """List sessions, the last changed first."""
    wanted = SessionStatus(status) if status else None
    limit = sys.maxsize if everything else NEWEST
    found, damaged = with_store(Project(root), lambda store: _find(store, wanted, limit))
    if as_json:
        listed = [summary.model_dump(mode="json") for summary in found]
        say_json({"sessions": listed, "damaged": damaged})
        return
    now = datetime.now(UTC)
    for summary in found:
        name = f"{summary.job_name}/{summary.workflow_name}"
        when = f"{age(summary.updated_at, now)} ago"
        goal = " ".join(summary.goal.split())[:60]
        say(f"{summary.session_id}  {summary.status:9}  {when:>10}  {name} at {summary.step_id}: {goal}")
    for name in damaged:
        say(f"damaged   {name}")
    if not (found or damaged):
        say("No sessions.", err=True)


@sessions.command()
@about_one
def show(session_id: str, root: str, as_json: bool) -> None:
    """Show one session: its goal, and each step with its outputs."""
    session = with_store(Project(root), lambda store: the_session(store, session_id))
    if as_json:
        say_json(session.model_dump(mode="json"))
        return
    say(f"{session.session_id}  {session.workflow}  {session.status}")
    say_text(session.goal, "goal     ")
    say(f"started  {session.started_at} by {session.principal}")
    if session.completed_at:
        say_text(f"{session.completed_at} {session.abort_reason or ''}".rstrip(), "ended    ")
    for step in session.step_progress.values():
        here = session.is_active and step.step_id == session.current_step_id
        state = "done" if step.completed_at else "now" if here else "open"
        say(f"  {state:4}  {step.step_id}  {json.dumps(step.outputs) if step.outputs else ''}".rstrip())
        if step.override_reason:
            say_text(step.override_reason, "        review overridden: ")


@sessions.command()
@about_one
def history(session_id: str, root: str, as_json: bool) -> None:
    """Show what happened in a session, in order."""
    session = with_store(Project(root), lambda store: the_session(store, session_id))
    if as_json:
        say_json([entry.model_dump(mode="json") for entry in session.history])
        return
    for entry in session.history:
        detail = f"  {json.dumps(entry.detail, ensure_ascii=False)}" if entry.detail else ""
        say(f"{entry.at}  {entry.kind}  {entry.step_id or ''}{detail}".rstrip())


@sessions.command("resume-text")
@about_one
def print_resume_text(session_id: str, root: str, as_json: bool) -> None:
    """Print what an agent needs that has to go on with a session and remembers nothing."""
    project = Project(root)
    session = with_store(project, lambda store: the_session(store, session_id))
    if not session.is_active:
        raise session_over(session)
    text = resume_text(upgraded(session, project.catalogue, project.workspace.root), project.workspace)
    if as_json:
        say_json({"session_id": session.session_id, "text": text})
        return
    say_text(text)


@sessions.command()
@click.argument("session_id")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept with the session.")
@path_option
@json_option
def abort(session_id: str, reason: str, root: str, as_json: bool) -> None:
    """End a session that nobody will go on with."""

    def end(session: Session) -> Session:
        if not session.is_active:
            raise session_over(session)
        reply = transitions.recorded_abort(session, reason, None)
        return transitions.abort(session, reply, now=datetime.now(UTC).isoformat(timespec="microseconds"))

    async def update(sessions: StateManager) -> Session:
        session = await the_session(await sessions.store(), session_id)
        return await sessions.update(session.session_id, end, session=session)

    session = with_sessions(Project(root), update)
    if as_json:
        say_json(session.summary().model_dump(mode="json"))
        return
    say(f"aborted  {session.session_id}  {session.workflow}")


@sessions.command()
@click.option("--older-than", "days", type=click.IntRange(0), default=30, show_default=True, metavar="DAYS")
@click.option("--dry-run", is_flag=True, help="Only say what would be archived.")
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


async def the_session(store: StateStore, given: str) -> Session:
    """Load a session by its id, or by a beginning of it that only one session has."""
    if session := await store.load(given):
        return session
    ids = [summary.session_id for summary in await store.find(limit=sys.maxsize)]
    meant = [session_id for session_id in ids if session_id.startswith(given)]
    if len(meant) == 1 and (session := await store.load(meant[0])):
        return session
    what = f"is the beginning of {len(meant)} ids" if meant else "not found"
    raise UnknownSession(f"Session {given!r} {what}", hint="`deepwork sessions list --all` shows all of them.")


def with_sessions(project: Project, use: Callable[[StateManager], Awaitable[ResultT]]) -> ResultT:
    """Use the sessions of a project, and close what that has opened."""

    async def run() -> ResultT:
        sessions = StateManager(project.store(), project.workspace)
        try:
            return await use(sessions)
        finally:
            await sessions.close()

    return anyio.run(run)


def with_store(project: Project, use: Callable[[StateStore], Awaitable[ResultT]]) -> ResultT:
    """Use the state store of a project."""

    async def use_store(sessions: StateManager) -> ResultT:
        return await use(await sessions.store())

    return with_sessions(project, use_store)


def stack_report(root: str, *, everything: bool) -> dict[str, Any]:
    """Tell of the active sessions what a hook needs after compaction, the last changed first."""

    async def load(store: StateStore) -> list[Session]:
        found = await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize if everything else NEWEST)
        sessions = [await _if_readable(store, summary.session_id) for summary in found]
        return [session for session in sessions if session]

    project = Project(root)
    return {"active_sessions": [_stack_item(_filled(session, project)) for session in with_store(project, load)]}


async def _if_readable(store: StateStore, session_id: str) -> Session | None:
    try:
        return await store.load(session_id)
    except CorruptSession:
        return None


def _filled(session: Session, project: Project) -> Session:
    """Give a session of 0.9 what its job says now, if the job is still there."""
    try:
        return upgraded(session, project.catalogue, project.workspace.root)
    except StateError:
        return session


def _stack_item(session: Session) -> dict[str, Any]:
    definition = session.definition
    begun = session.step_progress[session.current_step_id].begun if definition else None
    item: dict[str, Any] = {
        "session_id": session.session_id,
        "job_name": session.job_name,
        "workflow_name": session.workflow_name,
        "goal": session.goal,
        "current_step_id": session.current_step_id,
        "instance_id": session.instance_id,
        "completed_steps": [step.step_id for step in session.step_progress.values() if step.completed_at],
        "common_job_info": definition.common_job_info if definition else None,
        "current_step_instructions": begun.instructions if begun else None,
    }
    if definition:
        item["step_number"] = session.current_entry_index + 1
        item["total_steps"] = len(definition.workflow.entries)
    return item
