"""Rows of the database as `get_context` and the events show them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Table, and_, case, func, select

from deepwork_sql import Transaction
from deepwork_tracking.errors import NotFound
from deepwork_tracking.tables import phases, tasks
from deepwork_tracking.words import FAILED, IN_PROGRESS, PARTIAL_SUCCESS, SUCCESS, iso, iso_or_none

# Large, and not shown in lists.
HEAVY = ("files_changed", "verification")

_KIND = {"tracking_workflows": "workflow", "tracking_phases": "phase", "tracking_tasks": "task"}
_TASK_EXTRAS = (
    *("parent_task_id", "areas", "achievements", "limitations", "next_steps"),
    *("packages_added", "tests_status"),
)


def find(transaction: Transaction, table: Table, row_id: str) -> Row[Any]:
    """Return the row of this id.

    Raises:
        NotFound: It does not exist.
    """
    row = transaction.execute(select(table).where(table.c.id == row_id)).first()
    if row is None:
        kind = _KIND.get(table.name, "issue")
        raise NotFound(f"there is no {kind} {row_id[:64]!r}", hint=f"Use the {kind}_id that its call has given.")
    return row


def count(transaction: Transaction, query: Select[Any]) -> int:
    """Count the rows of a query."""
    return int(transaction.execute(select(func.count()).select_from(query.subquery())).scalar_one())


def workflow_row(row: Row[Any]) -> dict[str, Any]:
    """Show a workflow: what every answer of `get_context` begins with, and what was asked for of its end."""
    view = {
        "workflow_id": row.id,
        "workflow_name": row.name,
        "workflow_status": row.status,
        "current_phase": row.current_phase,
        "total_phases": row.total_phases,
    }
    return view | _not_empty(row, "summary", "achievements", "limitations")


def phase_rows(transaction: Transaction, condition: ColumnElement[bool]) -> list[dict[str, Any]]:
    """Show phases with the counts of their tasks, in the order of their numbers."""
    return [_phase_row(row) for row in transaction.execute(_phases_with_counts(condition))]


def task_row(row: Row[Any]) -> dict[str, Any]:
    """Show a task."""
    view = {
        "id": row.id,
        "phase_id": row.phase_id,
        "name": row.name,
        "goal": row.goal,
        "status": row.status,
        "caller_type": row.caller_type,
        "agent_name": row.agent_name,
        "summary": row.summary,
        "duration_seconds": seconds_between(row.started_at, row.completed_at),
        "started_at": iso(row.started_at),
        "completed_at": iso_or_none(row.completed_at),
        "manual_review_needed": row.manual_review_needed,
    }
    return view | _not_empty(row, *_TASK_EXTRAS)


def with_task(table: Table) -> Select[Any]:
    """Select what tasks have logged in a table, with the names that the rows below show."""
    names = (tasks.c.name.label("task_name"), tasks.c.agent_name)
    return select(table, *names).join(tasks, tasks.c.id == table.c.task_id)


def decision_row(row: Row[Any]) -> dict[str, Any]:
    """Show a decision."""
    return _log_row(row, "category", "question", "options_considered", "chosen", "reasoning", "trade_offs")


def milestone_row(row: Row[Any]) -> dict[str, Any]:
    """Show a milestone."""
    return _log_row(row, "message", "progress", "metadata")


def issue_row(row: Row[Any]) -> dict[str, Any]:
    """Show an issue; a resolved one with who has resolved it."""
    view = _log_row(row, "type", "description", "resolution")
    if row.resolved_at is None:
        return view
    resolution = {"resolved_at": iso(row.resolved_at), "resolved_by": row.resolved_by}
    return view | resolution | _not_empty(row, "resolved_note")


def seconds_between(started_at: int, completed_at: int | None) -> int | None:
    """Return a duration in seconds; None before its end."""
    return None if completed_at is None else round((completed_at - started_at) / 1000)


def task_duration() -> ColumnElement[Any]:
    """Sum the milliseconds of ended tasks."""
    return func.coalesce(func.sum(tasks.c.completed_at - tasks.c.started_at), 0)


def task_counts() -> list[ColumnElement[Any]]:
    """Count tasks by their status."""
    words = (SUCCESS, PARTIAL_SUCCESS, FAILED, IN_PROGRESS)
    counts = [func.coalesce(func.sum(case((tasks.c.status == word, 1), else_=0)), 0) for word in words]
    labels = ("success", "partial", "failed", "in_progress")
    return [
        func.count(tasks.c.id).label("total"),
        *(count.label(name) for name, count in zip(labels, counts, strict=True)),
    ]


def _phases_with_counts(condition: ColumnElement[bool]) -> Select[Any]:
    query = select(phases, *task_counts(), task_duration().label("milliseconds"))
    joined = query.select_from(phases.outerjoin(tasks, and_(tasks.c.phase_id == phases.c.id)))
    return joined.where(condition).group_by(*phases.c).order_by(phases.c.number)


def _phase_row(row: Row[Any]) -> dict[str, Any]:
    view = {
        "phase_number": row.number,
        "phase_name": row.name,
        "phase_id": row.id,
        "status": row.status,
        "is_parallel": row.is_parallel,
        "tasks": {
            "total": int(row.total),
            "completed": int(row.success + row.partial),
            "failed": int(row.failed),
            "in_progress": int(row.in_progress),
        },
        "duration_seconds": round(int(row.milliseconds) / 1000),
        "started_at": iso(row.started_at),
        "completed_at": iso_or_none(row.completed_at),
    }
    return view | _not_empty(row, "description", "summary")


def _log_row(row: Row[Any], *names: str) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in ("id", "task_id", "task_name", "agent_name", *names)}
    return values | {"created_at": iso(row.created_at)}


def _not_empty(row: Row[Any], *names: str) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, "", [])}
