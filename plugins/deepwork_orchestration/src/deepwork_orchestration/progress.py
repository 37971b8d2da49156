"""The progress of a workflow: what can be started next, what is done, and what waits."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from deepwork_orchestration import dependencies, tasks, workflows
from deepwork_orchestration.arguments import Flag, Id
from deepwork_orchestration.graph import grouped
from deepwork_orchestration.limits import names_in, omitted, some
from deepwork_orchestration.models import Mapped, Task, Workflow
from deepwork_orchestration.sql import Filters, listing
from deepwork_orchestration.states import CLOSED, DONE
from deepwork_orchestration.transaction import PlanTransaction

_CHOSEN_BY = "id", "name", "description", "status", "sequence", "parallel_group", "required_capabilities", "error"


def workflow_next_tasks(transaction: PlanTransaction, /, workflow_id: Id, *, include_failed: Flag = True) -> Mapped:
    """List the tasks that can be started now. Start at most free_slots."""
    workflow = transaction.get(Workflow, workflow_id)
    statuses = ["pending", "failed"] if include_failed else ["pending"]
    startable, left_out = ([], 0) if workflow.status in CLOSED else _startable(transaction, workflow_id, statuses)
    needed = dependencies.done_names(transaction, workflow_id) if startable else {}
    lines = tasks.lines(transaction, workflow_id)
    groups = grouped((line.parallel_group, line.id) for line in lines if line.parallel_group is not None)
    limit = names_in(len(startable))
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
            for task in startable
        ],
        **omitted("tasks", left_out),
        "max_parallel": workflow.max_parallel_tasks,
        "recommended_count": min(len(startable) + left_out, workflow.max_parallel_tasks),
        "running_count": running,
        "free_slots": max(0, workflow.max_parallel_tasks - running),
        "workflow_status": workflow.status,
        "all_complete": bool(lines) and all(line.status in DONE for line in lines),
    }


def _startable(transaction: PlanTransaction, workflow_id: str, statuses: list[str]) -> tuple[list[Any], int]:
    """Return what a coordinator chooses by among the tasks that can be started, and how many are left out."""
    filters = Filters(workflow_id=workflow_id).one_of("status", statuses)
    where = filters.where("assigned_agent_id IS NULL", "open_dependencies = 0")
    rest = f"FROM orchestration_tasks {where} ORDER BY sequence, name, number LIMIT :limit"
    return transaction.some(listing(Task, rest, *_CHOSEN_BY), **filters.arguments)


def _beside(group: list[str], own_id: str, limit: int) -> Mapped:
    """Return the others of a parallel group, as many as are listed."""
    count = max(0, len(group) - 1)
    listed = [task_id for task_id in group[: limit + 1] if task_id != own_id][:limit]
    return {"parallel_with": listed, **omitted("parallel_with", count - len(listed))}


def workflow_progress(transaction: PlanTransaction, /, workflow_id: Id) -> Mapped:
    """Show how much of a plan is done: count a workflow's tasks, and show what blocks which."""
    transaction.get(Workflow, workflow_id)
    lines = tasks.lines(transaction, workflow_id)
    waits_for = dependencies.open_names(transaction, workflow_id)
    open_lines = [line for line in lines if line.status not in DONE]
    limit = names_in(len(waits_for))
    current = min((line.sequence for line in open_lines), default=0)
    sequences = sorted({line.sequence for line in lines})
    completed = list(takewhile(lambda sequence: not open_lines or sequence < current, sequences))
    in_groups = [line for line in lines if line.parallel_group is not None]
    groups = grouped((line.parallel_group, line.status in DONE) for line in in_groups)
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
