"""`deepwork sessions show`, `history`, `resume-text` and `clean`: sessions are read, and put away."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta

import click

from deepwork.api import Session, SessionStatus, SessionSummary, StateStore, project_at, standing
from deepwork.commands.options import json_option, path_option, session_id_argument
from deepwork.commands.terminal import say, say_json, say_text
from deepwork.models.history import EventKind

_STATES = {"done": "done", "current": "now"}


@click.command()
@session_id_argument
@path_option
@json_option
def show(session_id: str, root: str, as_json: bool) -> None:
    """Show one session: its goal, and each step with its outputs."""
    session = project_at(root).session(session_id)
    if as_json:
        say_json(session.model_dump(mode="json"))
        return
    say(f"{session.session_id}  {session.workflow}  {session.status}  {session.position}".rstrip())
    say_text(session.goal, "goal     ")
    say(f"started  {session.started_at} by {session.principal}")
    if not session.is_unchanged:
        say("edited   its workflow, steps or reviews are not those with which it was started")
    if session.completed_at:
        say_text(f"{session.completed_at} {session.abort_reason or ''}".rstrip(), "ended    ")
    for step in session.step_progress.values():
        state = _STATES.get(standing.step_state(session, step.step_id), "open")
        unreported = standing.is_unreported(session, step.step_id)
        outputs = json.dumps(step.outputs) if step.outputs else "(never reported)" if unreported else ""
        agent = standing.agent_of(session, step.step_id)
        by = f"  by {agent}" if agent else ""
        say(f"  {state:4}  {step.step_id}  {outputs}{by}".rstrip())
        if step.override_reason:
            say_text(step.override_reason, f"        {_how_reviewed(session, step.step_id)}: ")


@click.command()
@session_id_argument
@path_option
@json_option
def history(session_id: str, root: str, as_json: bool) -> None:
    """Show what happened in a session, in order."""
    session = project_at(root).session(session_id)
    if as_json:
        say_json([entry.model_dump(mode="json") for entry in session.history])
        return
    for entry in session.history:
        detail = f"  {json.dumps(entry.stored, ensure_ascii=False)}" if entry.stored else ""
        say(f"{entry.at}  {entry.kind}  {entry.step_id or ''}{detail}".rstrip())


@click.command("resume-text")
@session_id_argument
@path_option
@json_option
def resume_text(session_id: str, root: str, as_json: bool) -> None:
    """Print what an agent needs to continue a session that it does not remember."""
    project = project_at(root)
    session = project.session(session_id)
    text = project.resume_text_of(session)
    if as_json:
        say_json({"session_id": session.session_id, "text": text})
        return
    say_text(text)


@click.command()
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

    archived = project_at(root).with_store(archive)
    if as_json:
        ids = [summary.session_id for summary in archived]
        say_json({"archived": ids, "dry_run": dry_run})
        return
    for summary in archived:
        say(f"{'would archive' if dry_run else 'archived'}  {summary.session_id}")
    say(f"{len(archived)} {'session' if len(archived) == 1 else 'sessions'}.", err=True)


def _how_reviewed(session: Session, step_id: str) -> str:
    """Return how a step was passed according to the history: by a self-review or by an override."""
    reason = standing.reason_of_passage(session, step_id)
    if reason is None or reason.kind == EventKind.OVERRIDE:
        return "overridden before any review" if getattr(reason, "before_review", False) else "review overridden"
    return "self-review passed, by the agent's word"
