"""A session and a review request for tests; a test replaces the fields that matter to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deepwork.api import ReviewRequest, Session
from deepwork.models.history import HistoryEntry
from deepwork.models.reviews import ReviewTask
from deepwork.models.sessions import SCHEMA_VERSION, StepProgress

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(minute: int) -> str:
    """Return a time, so many minutes after noon of one day, as sessions write it."""
    return (NOON + timedelta(minutes=minute)).isoformat(timespec="microseconds")


def a_session(session_id: str = "s1", **more: Any) -> Session:
    """Make a session in its first step, with one entry of history."""
    fields: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "session_id": session_id,
        "job_name": "demo",
        "workflow_name": "main",
        "current_step_id": "a",
        "started_at": at(0),
        "updated_at": at(0),
        "goal": "a goal",
        "step_progress": {"a": StepProgress(step_id="a", started_at=at(0))},
        "history": [HistoryEntry(at=at(0), kind="started")],
    }
    return Session(**{**fields, **more})


def a_request(project_root: Path, **more: Any) -> ReviewRequest:
    """Make a request with one review of two criteria, and write the one file that is to be judged."""
    (project_root / "report.md").write_text("# Report\n\nAll is well.\n", encoding="utf-8")
    fields: dict[str, Any] = {
        "session_id": "s1",
        "job_name": "demo",
        "workflow_name": "main",
        "step_id": "a",
        "project_root": project_root,
        "tasks": (
            ReviewTask(
                run_each="report.md",
                criteria={"Complete": "Is everything said?", "True": "Is it true?"},
                files=("report.md",),
            ),
        ),
        "payload": "BEGIN OUTPUTS\nreport.md\nEND OUTPUTS\n",
    }
    return ReviewRequest(**{**fields, **more})
