"""The tools that say what is next, what is done, and what waits."""

from __future__ import annotations

from itertools import takewhile

from deepwork_orchestration import claims, workflows
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import Flag, Id
from deepwork_orchestration.context_budget import shortened
from deepwork_orchestration.limits import MAX_ANSWER, names_in, omitted, some
from deepwork_orchestration.models import Mapped, shown_status
from deepwork_orchestration.states import CLOSED, DONE


def workflow_next_tasks(act: Act, workflow_id: Id, *, include_failed: Flag = True) -> Mapped:
    """List the tasks that can be started now. Start at most free_slots."""
    workflow = act.records.workflow(workflow_id)
    statuses = ["pending", "failed"] if include_failed else ["pending"]
    is_closed = workflow.status in CLOSED
    tasks, left_out = ([], 0) if is_closed else act.records.actionable(workflow_id, statuses)
    needed = act.records.dependency_names(workflow_id, is_done=True) if tasks else {}
    lines = act.records.task_lines(workflow_id)
    groups: dict[str, list[str]] = {}
    for line in lines:
        if line.parallel_group is not None:
            groups.setdefault(line.parallel_group, []).append(line.id)
    limit = names_in(len(tasks))
    # A task takes up a place while it is claimed or begun.
    running = sum(line.status in ("planning", "in_progress") or line.assigned_agent_id is not None for line in lines)
    return {
        "tasks": [
            {
                **task._asdict(),
                "can_parallelize": task.parallel_group is not None,
                **_beside(groups.get(task.parallel_group, []), task.id, limit),
                **some(needed.get(task.id, []), limit, "dependencies_completed"),
            }
            for task in tasks
        ],
        **omitted("tasks", left_out),
        "max_parallel": workflow.max_parallel_tasks,
        "recommended_count": min(len(tasks) + left_out, workflow.max_parallel_tasks),
        "running_count": running,
        "free_slots": max(0, workflow.max_parallel_tasks - running),
        "workflow_status": workflow.status,
        "all_complete": bool(lines) and all(line.status in DONE for line in lines),
    }


def _beside(group: list[str], own_id: str, limit: int) -> Mapped:
    """Return the others of a parallel group, as many as are listed."""
    count = max(0, len(group) - 1)
    listed = [other for other in group[: limit + 1] if other != own_id][:limit]
    return {"parallel_with": listed, **omitted("parallel_with", count - len(listed))}


def workflow_progress(act: Act, workflow_id: Id) -> Mapped:
    """Say how much of a plan is done: count a workflow's tasks, and show what blocks which."""
    act.records.workflow(workflow_id)
    lines = act.records.task_lines(workflow_id)
    waits_for = act.records.dependency_names(workflow_id, is_done=False)
    open_lines = [line for line in lines if line.status not in DONE]
    limit = names_in(len(waits_for))
    current = min((line.sequence for line in open_lines), default=0)
    sequences = sorted({line.sequence for line in lines})
    completed = list(takewhile(lambda sequence: not open_lines or sequence < current, sequences))
    groups: dict[str, list[bool]] = {}
    for line in lines:
        if line.parallel_group is not None:
            groups.setdefault(line.parallel_group, []).append(line.status in DONE)
    return {
        "total_tasks": len(lines),
        "by_status": workflows.count_by_status(lines),
        "completed_sequence": completed[-1] if completed else 0,
        "current_sequence": current,
        "blocked_tasks": [
            {"id": line.id, "name": line.name, **some(waits_for[line.id], limit, "blocked_by")}
            for line in open_lines
            if line.id in waits_for
        ],
        "parallel_groups": [
            {"group_id": group, "task_count": len(done), "completed": sum(done)} for group, done in groups.items()
        ],
        "estimated_remaining": len(open_lines),
    }


def task_check_dependencies(act: Act, task_id: Id) -> Mapped:
    """Say what a task waits for: which of its dependencies are completed, and which are not."""
    claims.notice_binding(act, act.records.task(task_id))
    needed = act.records.dependencies(task_id)
    pending = [
        {"id": task.id, "name": task.name, "status": shown_status(task.status, task.open_dependencies)}
        for task in needed
        if task.status not in DONE
    ]
    results, length = act.records.dependency_results(task_id, MAX_ANSWER)
    completed = [
        {"id": task.id, "name": task.name, "outcome": task.outcome and shortened(task.outcome, length)}
        for task in results
    ]
    return {"satisfied": not pending, "pending": pending, "completed": completed}
