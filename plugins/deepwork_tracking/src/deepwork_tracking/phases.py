"""Phases: containers of tasks, begun once for each number."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, and_, insert, select, update

from deepwork_sql import Transaction, new_id
from deepwork_tracking.errors import InvalidCall
from deepwork_tracking.rows import find, phase_rows, task_counts
from deepwork_tracking.tables import phases, tasks, workflows
from deepwork_tracking.words import IN_PROGRESS, iso, stored
from deepwork_tracking.workflows import emit, emit_workflow, lock, reopen


def start_phase(
    transaction: Transaction, workflow_id: str, number: int, *, is_parallel: bool | None, principal: str, **texts: Any
) -> dict[str, Any]:
    """Begin a phase; `texts` are its name and description.

    If there is a phase of this number already, show that one and change nothing.

    Raises:
        NotFound: There is no such workflow.
    """
    lock(transaction, workflow_id)
    workflow = find(transaction, workflows, workflow_id)
    same_number = and_(phases.c.workflow_id == workflow_id, phases.c.number == number)
    if phase := transaction.execute(select(phases).where(same_number)).first():
        return {**_started(phase), "already_exists": True}
    phase_id = new_id("ph")
    place = {"id": phase_id, "workflow_id": workflow_id, "number": number}
    state = {"status": IN_PROGRESS, "started_at": transaction.now}
    transaction.execute(insert(phases).values(**place, **state, is_parallel=bool(is_parallel), **texts))
    warnings = reopen(transaction, workflow)
    transaction.execute(update(workflows).where(workflows.c.id == workflow_id).values(current_phase=number))
    _emit_phase(transaction, "phase:created", workflow_id, phase_id, principal)
    result = _started(find(transaction, phases, phase_id))
    return result | ({"warnings": warnings} if warnings else {})


def complete_phase(
    transaction: Transaction, phase_id: str, *, status: str, summary: str | None, principal: str
) -> dict[str, Any]:
    """End a phase, also while tasks of it still run.

    Raises:
        NotFound: There is no such phase.
        InvalidCall: It has ended already.
    """
    lock(transaction, find(transaction, phases, phase_id).workflow_id)
    phase = find(transaction, phases, phase_id)
    if phase.status != IN_PROGRESS:
        raise InvalidCall(
            f"phase {phase_id!r} is {phase.status}, not {IN_PROGRESS}",
            hint="Begin another phase with start_phase if work goes on.",
        )
    changes = {"status": stored(status), "summary": summary, "completed_at": transaction.now}
    transaction.execute(update(phases).where(phases.c.id == phase_id).values(changes))
    _emit_phase(transaction, "phase:updated", phase.workflow_id, phase_id, principal)
    counts = _counts(transaction, phase_id)
    running = counts["in_progress"]
    return {
        "phase_id": phase_id,
        "workflow_id": phase.workflow_id,
        "number": phase.number,
        "name": phase.name,
        "status": stored(status),
        "completed_at": iso(transaction.now),
        "duration_ms": transaction.now - phase.started_at,
        "tasks": counts,
        "warnings": [f"{running} task(s) still in progress"] if running else [],
    }


def _started(phase: Row[Any]) -> dict[str, Any]:
    return {
        "phase_id": phase.id,
        "workflow_id": phase.workflow_id,
        "number": phase.number,
        "name": phase.name,
        "is_parallel": phase.is_parallel,
        "status": phase.status,
        "started_at": iso(phase.started_at),
    }


def _counts(transaction: Transaction, phase_id: str) -> dict[str, int]:
    row = transaction.execute(select(*task_counts()).where(tasks.c.phase_id == phase_id)).one()
    return {name: int(getattr(row, name)) for name in ("total", "success", "partial", "failed", "in_progress")}


def _emit_phase(transaction: Transaction, event: str, workflow_id: str, phase_id: str, principal: str) -> None:
    (phase,) = phase_rows(transaction, phases.c.id == phase_id)
    emit(transaction, event, workflow_id, phase, principal)
    emit_workflow(transaction, "workflow:updated", workflow_id, principal)
