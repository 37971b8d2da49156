"""`deepwork jobs get-stack`: what a client's hook needs to restore context after compaction."""

from __future__ import annotations

import sys
from typing import Any

import click

from deepwork.api import CorruptSession, Project, Session, SessionStatus, StateStore, project_at
from deepwork.commands.options import NEWEST, exact_path_option
from deepwork.commands.terminal import say_json
from deepwork.errors import StateError
from deepwork.models.standing import resume_call
from deepwork.text import one_line

MAX_STEPS = 100


@click.command("get-stack")
@exact_path_option
@click.option("--all", "everything", is_flag=True, help="All active sessions, not the ten newest.")
def get_stack(root: str, everything: bool) -> None:
    """Print the active sessions as JSON, for client hooks that restore context after compaction."""
    project = project_at(root)

    async def load(store: StateStore) -> list[Session]:
        summaries = await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize if everything else NEWEST)
        sessions = [await _load_readable(store, summary.session_id) for summary in summaries]
        return [session for session in sessions if session]

    sessions = project.with_store(load)
    say_json({"active_sessions": [_item(_with_definition(session, project)) for session in sessions]})


async def _load_readable(store: StateStore, session_id: str) -> Session | None:
    try:
        return await store.load(session_id)
    except CorruptSession:
        return None


def _with_definition(session: Session, project: Project) -> Session:
    """Add to a session of release 0.9 what its job says now, if the job still exists."""
    try:
        return project.upgraded(session)
    except StateError:
        return session


def _item(session: Session) -> dict[str, Any]:
    """Describe a session in short, escaped lines: a client runs this by itself, and the session's file is not trusted.

    The two longer texts of release 0.9 are null; an agent gets them when it asks for the session.
    """
    definition, summary = session.definition, session.summary()
    completed_steps = [one_line(step.step_id) for step in session.step_progress.values() if step.completed_at]
    item: dict[str, Any] = {
        "session_id": summary.session_id,
        "job_name": summary.job_name,
        "workflow_name": summary.workflow_name,
        "goal": summary.goal,
        "current_step_id": summary.step_id,
        "instance_id": one_line(session.instance_id) if session.instance_id else None,
        "completed_steps": completed_steps[-MAX_STEPS:],
        "common_job_info": None,
        "current_step_instructions": None,
        "resume": resume_call(summary.session_id),
    }
    if definition:
        item["step_number"] = session.current_entry_index + 1
        item["total_steps"] = len(definition.workflow.entries)
    return item
