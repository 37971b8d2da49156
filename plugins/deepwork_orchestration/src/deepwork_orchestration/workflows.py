"""Workflows: plans of many tasks, from the first words about them to the last status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from deepwork_orchestration import dependencies, repositories, tasks
from deepwork_orchestration.arguments import Count, Flag, Id, Limit, Name, Parallel, Plan, PlanTask, SourceType, Text
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.graph import check_graph
from deepwork_orchestration.limits import check_plan, omitted, size_of
from deepwork_orchestration.models import Mapped, Task, WholeWorkflow, Workflow, shown_status
from deepwork_orchestration.sql import Filters, sql
from deepwork_orchestration.states import TASK_STATUSES, WORKFLOW_TRANSITIONS, WorkflowStatus, check_transition
from deepwork_orchestration.tokens import estimate_text, estimator
from deepwork_orchestration.transaction import PlanTransaction

# What a plan says of a task that is stored as its context.
PLANNED_CONTEXT = {"estimated_complexity", "files_likely_affected"}

_ALL = "FROM orchestration_workflows"
_NUMBER = sql(f"SELECT number {_ALL} WHERE id = :id")


def workflow_create(
    transaction: PlanTransaction,
    /,
    name: Name,
    source_type: SourceType,
    source_content: Text,
    source_ref: Text | None = None,
    repository_path: Text | None = None,
    max_parallel_tasks: Parallel = 1,
    *,
    auto_create_workspaces: Flag = False,
) -> Mapped:
    """Create a workflow: work of several agents. Next, workflow_set_plan. repository_path: default this project."""
    workflow = add_workflow(
        transaction,
        repository_path,
        name=name,
        source_type=source_type,
        source_ref=source_ref,
        source_content=source_content,
        max_parallel_tasks=max_parallel_tasks,
        auto_create_workspaces=auto_create_workspaces,
    )
    return {
        "id": workflow.id,
        "name": workflow.name,
        "status": workflow.status,
        "max_parallel_tasks": workflow.max_parallel_tasks,
    }


def workflow_get(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    *,
    include_tasks: Flag = False,
    include_task_summaries: Flag = True,
) -> Mapped:
    """Get a workflow."""
    workflow = transaction.get(WholeWorkflow, id)
    lines: Sequence[Any] = ()
    left_out = 0
    if include_tasks and include_task_summaries:
        lines, left_out = tasks.summaries(transaction, id)
    elif include_tasks:
        lines = tasks.lines(transaction, id)
    listed = [_listed(line, is_summary=include_task_summaries) for line in lines]
    return {**workflow.reply(), "tasks": listed, **omitted("tasks", left_out)}


def workflow_list(
    transaction: PlanTransaction,
    /,
    repository_path: Text | None = None,
    status: list[WorkflowStatus] | None = None,
    limit: Limit = 20,
    offset: Count = 0,
) -> Mapped:
    """List workflows, newest first."""
    filters = Filters().one_of("status", status)
    if repository_path is not None:
        path = repositories.normalized(repository_path, "repository_path")
        filters.add("repository_id IN (SELECT id FROM orchestration_repositories WHERE path = :path)", path=path)
    page = sql(
        f"SELECT id, name, status, created_at, updated_at {_ALL} {filters.where()} "
        "ORDER BY created_at DESC, number DESC LIMIT :limit OFFSET :offset"
    )
    workflows = transaction.rows(page, **filters.arguments, limit=limit, offset=offset)
    total = transaction.count(sql(f"SELECT count(*) AS total {_ALL} {filters.where()}"), **filters.arguments)
    return {"workflows": [workflow._asdict() for workflow in workflows], "total": total}


def workflow_set_plan(transaction: PlanTransaction, /, id: Id, plan: Plan) -> Mapped:  # noqa: A002
    """Set the plan, once. depends_on (task names) orders the tasks; sequence only sorts and groups them."""
    workflow = transaction.get(Workflow, id)
    if workflow.status != "planning":
        raise OrchestrationError(
            "INVALID_STATE",
            f"workflow {id} is {workflow.status!r}; a plan is set once, while it is 'planning'",
            "Create another workflow for another plan.",
        )
    content = plan.model_dump(mode="json", exclude_unset=True)
    task_count, group_count = set_tasks(transaction, id, plan.tasks, plan_summary=plan.summary, initial_plan=content)
    return {
        "workflow_id": id,
        "tasks_created": task_count,
        "parallelizable_groups": group_count,
        "status": "ready",
    }


def workflow_update_status(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    status: WorkflowStatus,
    reason: Text | None = None,
) -> Mapped:
    """Change the status of a workflow."""
    workflow = transaction.get(Workflow, id)
    if status == workflow.status:
        return {"success": True}
    check_transition("workflow", WORKFLOW_TRANSITIONS, workflow.status, status)
    noted = {} if reason is None else {"config": {**(workflow.config or {}), "last_status_reason": reason}}
    _updated(transaction, transaction.change(Workflow, id, status=status, **noted))
    open_count = tasks.open_count(transaction, id) if status == "completed" else 0
    warning = f"{open_count} tasks are neither completed nor skipped"
    return {"success": True, **({"warnings": [warning]} if open_count else {})}


def workflow_set_parallelism(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    max_parallel_tasks: Parallel,
    auto_create_workspaces: Flag | None = None,
) -> Mapped:
    """Change how many tasks should run at once."""
    workflow = transaction.get(Workflow, id)
    flag = workflow.auto_create_workspaces if auto_create_workspaces is None else auto_create_workspaces
    values = {"max_parallel_tasks": max_parallel_tasks, "auto_create_workspaces": flag}
    _updated(transaction, transaction.change(Workflow, id, **values))
    return {"success": True}


def workflow_get_summary(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    format: Literal["json", "markdown"] = "json",  # noqa: A002
) -> Mapped:
    """Get a short summary of a workflow."""
    workflow = transaction.get(Workflow, id)
    lines = tasks.lines(transaction, id)
    counts = count_by_status(lines)
    summary: Mapped = {
        "id": workflow.id,
        "name": workflow.name,
        "status": workflow.status,
        "plan_summary": workflow.plan_summary,
        "total_tasks": len(lines),
        "tasks_by_status": {status: count for status, count in counts.items() if count},
    }
    text = _markdown(summary) if format == "markdown" else None
    return {
        "summary": summary if text is None else text,
        "token_estimate": estimate_text(summary if text is None else text),
        "estimator": estimator().name,
    }


def count_by_status(lines: Sequence[Any]) -> dict[str, int]:
    """Count tasks by the status that agents are told, with all eight words."""
    counts = Counter(shown_status(line.status, line.open_dependencies) for line in lines)
    return {status: counts[status] for status in TASK_STATUSES}


def add_workflow(transaction: PlanTransaction, repository_path: str | None, **values: Any) -> Workflow:
    """Store a new workflow in `planning`, and its repository if that is new."""
    path = repositories.normalized(
        transaction.project_root if repository_path is None else repository_path, "repository_path"
    )
    repository_id = repositories.register(transaction, path)
    workflow = transaction.add(
        Workflow, repository_id=repository_id, status="planning", principal=transaction.principal, **values
    )
    transaction.emit("workflow:created", workflow.id, workflow.summary())
    return workflow


def number_of(transaction: PlanTransaction, workflow_id: str) -> int:
    """Return the number of a workflow, which grows with each: tasks of older workflows come first."""
    return int(transaction.row(_NUMBER, id=workflow_id).number)


def set_tasks(
    transaction: PlanTransaction,
    workflow_id: str,
    planned: Sequence[PlanTask],
    *,
    plan_summary: str,
    initial_plan: Mapped,
) -> tuple[int, int]:
    """Store the tasks of a plan and make the workflow ready; return the number of tasks and of parallel groups.

    Raises:
        OrchestrationError: The tasks make no plan that can be finished.
    """
    needed = {task.name: tuple(dict.fromkeys(task.depends_on)) for task in planned}
    check_plan(len(planned), sum(map(len, needed.values())), size_of(initial_plan))
    check_graph([task.name for task in planned], needed)
    workflow = {"workflow_id": workflow_id, "workflow_number": number_of(transaction, workflow_id)}
    rows = [workflow | _row(task, open_dependencies=len(needed[task.name])) for task in planned]
    ids = dict(zip(needed, transaction.add_all(Task, rows), strict=True))
    dependencies.add(transaction, ((ids[name], ids[before]) for name in needed for before in needed[name]))
    values = {"status": "ready", "plan_summary": plan_summary, "initial_plan": initial_plan}
    _updated(transaction, transaction.change(Workflow, workflow_id, **values))
    groups = {task.parallel_group for task in planned} - {None}
    return len(rows), len(groups)


def _row(task: PlanTask, *, open_dependencies: int) -> Mapped:
    columns = task.model_dump(exclude={"depends_on", *PLANNED_CONTEXT})
    context = task.model_dump(include=PLANNED_CONTEXT, exclude_none=True)
    return {**columns, "status": "pending", "context": context or None, "open_dependencies": open_dependencies}


def _updated(transaction: PlanTransaction, workflow: Workflow) -> None:
    transaction.emit("workflow:updated", workflow.id, workflow.summary())


def _listed(task: Any, *, is_summary: bool) -> Mapped:
    status = shown_status(task.status, task.open_dependencies)
    listed = {"id": task.id, "name": task.name, "status": status}
    listed |= {"sequence": task.sequence, "parallel_group": task.parallel_group}
    if is_summary:
        listed |= {"description": task.description, "outcome": task.outcome, "plan_summary": task.plan_summary}
    return listed


def _markdown(summary: Mapped) -> str:
    counts = [f"- {status}: {count}" for status, count in summary["tasks_by_status"].items()]
    plan = ["", "## Plan", "", summary["plan_summary"]] if summary["plan_summary"] else []
    statuses = ["", "## Tasks by status", "", *counts] if counts else []
    head = [f"# {summary['name']}", "", f"Status: {summary['status']}", f"Tasks: {summary['total_tasks']}"]
    return "\n".join([*head, *plan, *statuses]) + "\n"
