"""Tasks: how they are planned, how they move from status to status, and what their holders record of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepwork_orchestration import checkpoints, claims, dependencies
from deepwork_orchestration.agents import note_call_of_holder
from deepwork_orchestration.arguments import (
    Caller,
    CheckpointType,
    Fence,
    Flag,
    Id,
    Limit,
    NewTaskPlan,
    Object,
    TaskPlan,
    Text,
    Texts,
)
from deepwork_orchestration.errors import OrchestrationError, some
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Mapped, Task, Workflow
from deepwork_orchestration.sql import columns, listing, one_of, sql
from deepwork_orchestration.states import DONE, FINISHED, TASK_TRANSITIONS, TaskStatus, check_transition
from deepwork_orchestration.transaction import PlanTransaction

SUMMARY = 200

_OF_WORKFLOW = "FROM orchestration_tasks WHERE workflow_id = :workflow_id"
_IN_ORDER = "ORDER BY sequence, name, number"
_LINE = "id", "name", "status", "sequence", "parallel_group", "open_dependencies"
_ALL = sql(f"SELECT {columns(Task)} {_OF_WORKFLOW} {_IN_ORDER}")
_SUMMARIES = listing(Task, f"{_OF_WORKFLOW} {_IN_ORDER} LIMIT :limit", *_LINE, "description", "outcome", "plan_summary")
_LINES = sql(f"SELECT {', '.join(_LINE)}, assigned_agent_id {_OF_WORKFLOW} {_IN_ORDER}")
_OPEN_COUNT = sql(f"SELECT count(*) AS total {_OF_WORKFLOW} AND NOT {one_of('status', DONE)}")
# A workflow is in progress from its first task on.
_BEGIN_WORKFLOW = sql(
    "UPDATE orchestration_workflows SET status = 'in_progress', updated_at = :now "
    f"WHERE id = :id AND status = 'ready' RETURNING {columns(Workflow)}"
)


def task_get(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    *,
    include_checkpoints: Flag = False,
    checkpoint_limit: Limit | None = None,
) -> Mapped:
    """Get a task; checkpoints: the newest, oldest first."""
    task = transaction.get(Task, id)
    note_call_of_holder(transaction, task)
    newest, left_out = checkpoints.last(transaction, id, checkpoint_limit) if include_checkpoints else ([], 0)
    listed = [checkpoint.reply() for checkpoint in newest]
    return {**task.reply(), "checkpoints": listed, **omitted("checkpoints", left_out)}


def task_set_plan(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    plan: TaskPlan,
    context: Object | None = None,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Write down how a task will be done, while it is in planning; context is merged into what is stored."""
    task = transaction.get(Task, id)
    claims.guard(transaction, task, "task_set_plan", fence=fence, agent_id=agent_id)
    if task.status != "planning":
        raise OrchestrationError(
            "INVALID_STATE",
            f"task {id} is {task.shown_status!r}; it takes a plan while it is 'planning'",
            'Call task_update_status with status "planning" first, or task_replan for a task that has begun or failed.',
        )
    merged = task.context if context is None else {**(task.context or {}), **context}
    planned = _store_plan(transaction, id, plan, context=merged)
    transaction.emit("task:updated", task.workflow_id, planned.event())
    return {"success": True}


def task_update_status(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    status: TaskStatus,
    outcome: Text | None = None,
    outcome_detail: Object | None = None,
    error: Text | None = None,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Change a task's status: pending, planning, in_progress, completed (needs outcome) or failed (needs error)."""
    task = transaction.get(Task, id)
    claims.guard(transaction, task, "task_update_status", fence=fence, agent_id=agent_id)
    check_transition("task", TASK_TRANSITIONS, task.shown_status, status)
    if status == "planning":
        _check_unblocked(transaction, task)
    if status == "completed" and not outcome:
        raise OrchestrationError("MISSING_OUTCOME", "a completed task needs an outcome", "Say what was done: outcome.")
    if status == "failed" and not error:
        raise OrchestrationError("MISSING_ERROR", "a failed task needs an error", "Say what went wrong: error.")
    results: Mapped = {"outcome": outcome, "outcome_detail": outcome_detail}
    values = {name: value for name, value in results.items() if value is not None}
    # The error is that of the last failure, until the task is pending again.
    if status in ("failed", "pending"):
        values["error"] = error if status == "failed" else None
    _move(transaction, task, status, values)
    return {"success": True}


def task_replan(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    reason: Text,
    new_plan: NewTaskPlan,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Replan a failed or in_progress task; it becomes pending."""
    task = transaction.get(Task, id)
    claims.guard(transaction, task, "task_replan", fence=fence, agent_id=agent_id)
    if task.status not in ("failed", "in_progress"):
        raise OrchestrationError(
            "INVALID_STATE",
            f"task {id} is {task.shown_status!r}; only a task that is 'failed' or 'in_progress' can be replanned",
            "A task in planning takes a new plan with task_set_plan.",
        )
    planned = _store_plan(transaction, id, new_plan, status="pending", outcome=None, outcome_detail=None, error=None)
    checkpoint = checkpoints.add(transaction, task, "replan", reason, detail={"previous_plan": task.plan})
    transaction.emit("task:updated", task.workflow_id, planned.event())
    return {"success": True, "checkpoint_id": checkpoint.id}


def checkpoint_add(
    transaction: PlanTransaction,
    /,
    task_id: Id,
    type: CheckpointType,  # noqa: A002
    summary: Text,
    detail: Object | None = None,
    files_changed: Texts | None = None,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Record what was done, decided or went wrong in between, for the agent that goes on with the task."""
    task = transaction.get(Task, task_id)
    claims.guard(transaction, task, "checkpoint_add", fence=fence, agent_id=agent_id)
    checkpoint = checkpoints.add(transaction, task, type, summary, detail=detail, files_changed=files_changed)
    return {"id": checkpoint.id, "sequence": checkpoint.sequence}


# Which tasks a workflow has.


def of_workflow(transaction: PlanTransaction, workflow_id: str) -> list[Task]:
    """Return the tasks of a workflow in their order."""
    return transaction.all(Task, _ALL, workflow_id=workflow_id)


def summaries(transaction: PlanTransaction, workflow_id: str) -> tuple[list[Any], int]:
    """Return of each task what summaries show, and how many tasks are left out."""
    return transaction.some(_SUMMARIES, workflow_id=workflow_id)


def lines(transaction: PlanTransaction, workflow_id: str) -> Sequence[Any]:
    """Return of each task what overviews need."""
    return transaction.rows(_LINES, workflow_id=workflow_id)


def open_count(transaction: PlanTransaction, workflow_id: str) -> int:
    """Count the tasks of a workflow that are neither completed nor skipped."""
    return transaction.count(_OPEN_COUNT, workflow_id=workflow_id)


# How a task changes.


def _store_plan(transaction: PlanTransaction, task_id: str, plan: NewTaskPlan, **values: object) -> Task:
    content = plan.model_dump(mode="json", exclude_unset=True)
    return transaction.change(Task, task_id, plan=content, plan_summary=plan.approach[:SUMMARY], **values)


def _check_unblocked(transaction: PlanTransaction, task: Task) -> None:
    if task.open_dependencies:
        names = [needed.name for needed in dependencies.needed_by(transaction, task.id) if needed.status not in DONE]
        raise OrchestrationError(
            "TASK_BLOCKED",
            f"task {task.name!r} waits for: {some([*map(repr, names)])}",
            "Take another task from task_get_available, and come back when these are completed.",
        )


def _move(transaction: PlanTransaction, task: Task, status: str, values: Mapped) -> None:
    """Store a new status and what follows from it: for the claim, for tasks that wait, for the workflow."""
    if status in FINISHED:
        values |= claims.finish(transaction, task)
    moved = transaction.change(Task, task.id, status=status, **values)
    if status in FINISHED:
        claims.settle(transaction, task.assigned_agent_id)
    if status in DONE:
        dependencies.release_dependents(transaction, task.id)
    if status == "planning":
        _begin_workflow(transaction, task.workflow_id)
    # A task that has ended names no holder any more: `views.ended_by` reads who it was from this event.
    ended_by = {"agent_id": task.assigned_agent_id} if status in FINISHED else {}
    transaction.emit("task:updated", task.workflow_id, moved.event() | ended_by)


def _begin_workflow(transaction: PlanTransaction, workflow_id: str) -> None:
    row = transaction.row(_BEGIN_WORKFLOW, id=workflow_id, now=transaction.now)
    if row is not None:
        workflow = Workflow(*row)
        transaction.emit("workflow:updated", workflow.id, workflow.summary())
