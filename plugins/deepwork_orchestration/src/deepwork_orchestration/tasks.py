"""The tools about single tasks."""

from __future__ import annotations

from deepwork_orchestration import checkpoints, claims
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import Caller, Fence, Flag, Id, Limit, NewTaskPlan, Object, TaskPlan, Text
from deepwork_orchestration.errors import OrchestrationError, some
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Mapped, Task
from deepwork_orchestration.states import DONE, FINISHED, TASK_TRANSITIONS, TaskStatus, check_transition

SUMMARY = 200


def task_get(
    act: Act,
    id: Id,  # noqa: A002
    *,
    include_checkpoints: Flag = False,
    checkpoint_limit: Limit | None = None,
) -> Mapped:
    """Get a task; checkpoints: the newest, oldest first."""
    task = act.records.task(id)
    claims.notice_binding(act, task)
    newest, left_out = act.records.last_checkpoints(id, checkpoint_limit) if include_checkpoints else ([], 0)
    listed = [checkpoint.reply() for checkpoint in newest]
    return {**task.reply(), "checkpoints": listed, **omitted("checkpoints", left_out)}


def task_set_plan(
    act: Act,
    id: Id,  # noqa: A002
    plan: TaskPlan,
    context: Object | None = None,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Write down how a task will be done, while it is in planning; context is merged into what is stored."""
    task = act.records.task(id)
    claims.guard(act, task, "task_set_plan", fence=fence, agent_id=agent_id)
    if task.status != "planning":
        raise OrchestrationError(
            "INVALID_STATE",
            f"task {id} is {task.shown_status!r}; it takes a plan while it is 'planning'",
            'Call task_update_status with status "planning" first, or task_replan for a task that has begun or failed.',
        )
    merged = task.context if context is None else {**(task.context or {}), **context}
    planned = _store_plan(act, id, plan, context=merged)
    act.emit("task:updated", task.workflow_id, planned.event())
    return {"success": True}


def task_update_status(
    act: Act,
    id: Id,  # noqa: A002
    status: TaskStatus,
    outcome: Text | None = None,
    outcome_detail: Object | None = None,
    error: Text | None = None,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Change a task's status: pending, planning, in_progress, completed (needs outcome) or failed (needs error)."""
    task = act.records.task(id)
    claims.guard(act, task, "task_update_status", fence=fence, agent_id=agent_id)
    check_transition("task", TASK_TRANSITIONS, task.shown_status, status)
    if status == "planning":
        _check_unblocked(act, task)
    if status == "completed" and not outcome:
        raise OrchestrationError("MISSING_OUTCOME", "a completed task needs an outcome", "Say what was done: outcome.")
    if status == "failed" and not error:
        raise OrchestrationError("MISSING_ERROR", "a failed task needs an error", "Say what went wrong: error.")
    _move(act, task, status, outcome=outcome, outcome_detail=outcome_detail, error=error)
    return {"success": True}


def task_replan(
    act: Act,
    id: Id,  # noqa: A002
    reason: Text,
    new_plan: NewTaskPlan,
    fence: Fence | None = None,
    agent_id: Caller | None = None,
) -> Mapped:
    """Replan a failed or in_progress task; it becomes pending."""
    task = act.records.task(id)
    claims.guard(act, task, "task_replan", fence=fence, agent_id=agent_id)
    if task.status not in ("failed", "in_progress"):
        raise OrchestrationError(
            "INVALID_STATE",
            f"task {id} is {task.shown_status!r}; only a task that is 'failed' or 'in_progress' can be replanned",
            "A task in planning takes a new plan with task_set_plan.",
        )
    planned = _store_plan(act, id, new_plan, status="pending", outcome=None, outcome_detail=None, error=None)
    checkpoint = checkpoints.add(act, task, "replan", reason, detail={"previous_plan": task.plan})
    act.emit("task:updated", task.workflow_id, planned.event())
    return {"success": True, "checkpoint_id": checkpoint.id}


def _store_plan(act: Act, task_id: str, plan: TaskPlan | NewTaskPlan, **values: object) -> Task:
    content = plan.model_dump(mode="json", exclude_unset=True)
    return act.records.change(Task, task_id, plan=content, plan_summary=plan.approach[:SUMMARY], **values)


def _check_unblocked(act: Act, task: Task) -> None:
    if task.open_dependencies:
        names = [needed.name for needed in act.records.dependencies(task.id) if needed.status not in DONE]
        raise OrchestrationError(
            "TASK_BLOCKED",
            f"task {task.name!r} waits for: {some([*map(repr, names)])}",
            "Take another task from task_get_available, and come back when these are completed.",
        )


def _move(
    act: Act, task: Task, status: str, *, outcome: str | None, outcome_detail: Mapped | None, error: str | None
) -> None:
    """Store a new status and what follows from it: for the claim, for tasks that wait, for the workflow."""
    results: Mapped = {"outcome": outcome, "outcome_detail": outcome_detail}
    values = {name: value for name, value in results.items() if value is not None}
    # The error is that of the last failure, until the task is pending again.
    if status in ("failed", "pending"):
        values["error"] = error if status == "failed" else None
    if status in FINISHED:
        values |= claims.finish(act, task)
    moved = act.records.change(Task, task.id, status=status, **values)
    if status in FINISHED:
        claims.settle(act, task.assigned_agent_id)
    if status in DONE:
        act.records.release_dependents(task.id)
    if status == "planning" and (workflow := act.records.start_workflow(task.workflow_id)):
        act.emit("workflow:updated", workflow.id, workflow.summary())
    act.emit("task:updated", task.workflow_id, moved.event())
