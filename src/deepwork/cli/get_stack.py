"""The report of `deepwork jobs get-stack`: what a client's hook needs to restore context after compaction."""

from __future__ import annotations

import sys
from typing import Any

from deepwork.cli.stores import NEWEST, with_store
from deepwork.errors import CorruptSession, StateError
from deepwork.models.sessions import Session, SessionStatus
from deepwork.ports.state_store import StateStore
from deepwork.project.project import Project
from deepwork.sessions.upgrade import upgraded


def stack_report(project: Project, *, everything: bool) -> dict[str, Any]:
    """Describe the active sessions, the last changed first."""

    async def load(store: StateStore) -> list[Session]:
        summaries = await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize if everything else NEWEST)
        sessions = [await _load_readable(store, summary.session_id) for summary in summaries]
        return [session for session in sessions if session]

    sessions = with_store(project, load)
    return {"active_sessions": [_item(_with_definition(session, project)) for session in sessions]}


async def _load_readable(store: StateStore, session_id: str) -> Session | None:
    try:
        return await store.load(session_id)
    except CorruptSession:
        return None


def _with_definition(session: Session, project: Project) -> Session:
    """Add to a session of release 0.9 what its job says now, if the job still exists."""
    try:
        return upgraded(session, project.catalogue, project.workspace.root)
    except StateError:
        return session


def _item(session: Session) -> dict[str, Any]:
    definition = session.definition
    begin_step = session.step_progress[session.current_step_id].begun if definition else None
    item: dict[str, Any] = {
        "session_id": session.session_id,
        "job_name": session.job_name,
        "workflow_name": session.workflow_name,
        "goal": session.goal,
        "current_step_id": session.current_step_id,
        "instance_id": session.instance_id,
        "completed_steps": [step.step_id for step in session.step_progress.values() if step.completed_at],
        "common_job_info": definition.common_job_info if definition else None,
        "current_step_instructions": begin_step.instructions if begin_step else None,
    }
    if definition:
        item["step_number"] = session.current_entry_index + 1
        item["total_steps"] = len(definition.workflow.entries)
    return item
