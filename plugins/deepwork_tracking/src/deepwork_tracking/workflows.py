"""Workflows: begun, ended, and begun again when work on them goes on."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, func, insert, select, update

from deepwork_sql import Transaction, new_id
from deepwork_tracking.rows import find, task_duration, workflow_row
from deepwork_tracking.tables import phases, tasks, workflows
from deepwork_tracking.words import IN_PROGRESS, TOTAL_PHASES, iso, stored

SOURCE = "tracking"


def emit(transaction: Transaction, event: str, workflow_id: str, data: dict[str, Any], principal: str) -> None:
    """Write an event of this plugin."""
    transaction.emit(
        SOURCE, event, workflow_id=workflow_id, data={"workflow_id": workflow_id, **data}, principal=principal
    )


def emit_workflow(transaction: Transaction, event: str, workflow_id: str, principal: str) -> None:
    """Write an event about a workflow, as it is now."""
    emit(transaction, event, workflow_id, workflow_row(find(transaction, workflows, workflow_id)), principal)


def lock(transaction: Transaction, workflow_id: str) -> None:
    """Let one writer at a time change a workflow, its phases and its tasks."""
    transaction.lock(f"{SOURCE}:{workflow_id}")


def start_workflow(
    transaction: Transaction, *, profile: str | None, total_phases: int | None, principal: str, **texts: str | None
) -> dict[str, Any]:
    """Begin a workflow; `texts` are its name, objective, scope and constraints."""
    profile, workflow_id = profile or "standard", new_id("tw")
    values = {
        "id": workflow_id,
        "profile": stored(profile),
        "total_phases": total_phases or TOTAL_PHASES[profile],
        "status": IN_PROGRESS,
        "current_phase": 0,
        "created_at": transaction.now,
        **texts,
    }
    transaction.execute(insert(workflows).values(values))
    emit_workflow(transaction, "workflow:created", workflow_id, principal)
    return {
        "workflow_id": workflow_id,
        "profile": values["profile"],
        "total_phases": values["total_phases"],
        "created_at": iso(transaction.now),
    }


def complete_workflow(
    transaction: Transaction, workflow_id: str, *, status: str, principal: str, **results: Any
) -> dict[str, Any]:
    """End a workflow; `results` are its summary, achievements and limitations.

    Raises:
        NotFound: There is no such workflow.
    """
    lock(transaction, workflow_id)
    workflow = find(transaction, workflows, workflow_id)
    if workflow.ended_as:
        warning = f"the workflow was already completed as {workflow.ended_as!r}; nothing was changed"
        return _completed(workflow_id, workflow.ended_as, workflow.metrics, [warning])
    metrics = _metrics(transaction, workflow_id)
    warnings = _open_work(transaction, workflow_id)
    changes = {"status": stored(status), "ended_as": status, "metrics": metrics, "completed_at": transaction.now}
    transaction.execute(update(workflows).where(workflows.c.id == workflow_id).values(**changes, **results))
    emit_workflow(transaction, "workflow:updated", workflow_id, principal)
    return _completed(workflow_id, status, metrics, warnings)


def reopen(transaction: Transaction, workflow: Row[Any]) -> list[str]:
    """Let work on a finished workflow go on, and give the warning that says so."""
    if workflow.status == IN_PROGRESS:
        return []
    changes = {"status": IN_PROGRESS, "ended_as": None, "metrics": None, "completed_at": None}
    transaction.execute(update(workflows).where(workflows.c.id == workflow.id).values(**changes))
    return [
        f"the workflow was {workflow.status}; it is {IN_PROGRESS} again, and complete_workflow has to be called anew"
    ]


def _completed(workflow_id: str, status: str, metrics: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    result = {"workflow_id": workflow_id, "status": status, "metrics": metrics}
    return result | ({"warnings": warnings} if warnings else {})


def _metrics(transaction: Transaction, workflow_id: str) -> dict[str, int]:
    belongs = tasks.c.workflow_id == workflow_id
    milliseconds = transaction.execute(select(task_duration()).where(belongs)).scalar_one()
    changed = transaction.execute(select(tasks.c.files_changed).where(belongs, tasks.c.files_changed.is_not(None)))
    files = {path for (kinds,) in changed for paths in kinds.values() for path in paths}
    return {
        "total_phases": _count(transaction, phases, workflow_id),
        "total_tasks": _count(transaction, tasks, workflow_id),
        "duration": round(int(milliseconds) / 1000),
        "files_changed": len(files),
    }


def _open_work(transaction: Transaction, workflow_id: str) -> list[str]:
    return [
        f"{number} {noun}(s) still in progress"
        for table, noun in ((phases, "phase"), (tasks, "task"))
        if (number := _count(transaction, table, workflow_id, table.c.status == IN_PROGRESS))
    ]


def _count(transaction: Transaction, table: Any, workflow_id: str, *conditions: Any) -> int:
    query = select(func.count()).select_from(table).where(table.c.workflow_id == workflow_id, *conditions)
    return int(transaction.execute(query).scalar_one())
