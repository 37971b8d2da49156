"""Workspaces: the folders in which tasks of a workflow are worked on, as they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepwork_orchestration.agents import renew_leases_of_holder
from deepwork_orchestration.arguments import Id
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.models import Mapped, Task, Workflow, Workspace
from deepwork_orchestration.sql import Filters, columns, sql
from deepwork_orchestration.states import WORKSPACE_TRANSITIONS, WorkspaceStatus, check_transition
from deepwork_orchestration.transaction import PlanTransaction

_ALL = f"SELECT {columns(Workspace)} FROM orchestration_workspaces"
_ACTIVE_AT = sql(f"{_ALL} WHERE path = :path AND status = 'active'")


# The tools that need no git; `workspace_folders` has the others.


def workspace_list(
    transaction: PlanTransaction, /, workflow_id: Id, status: list[WorkspaceStatus] | None = None
) -> Mapped:
    """List workspaces of a workflow, oldest first."""
    transaction.get(Workflow, workflow_id)
    filters = Filters(workflow_id=workflow_id).one_of("status", status)
    statement = sql(f"{_ALL} {filters.where()} ORDER BY created_at, number")
    workspaces = transaction.all(Workspace, statement, **filters.arguments)
    return {"workspaces": [workspace.reply() for workspace in workspaces]}


def task_assign_workspace(transaction: PlanTransaction, /, task_id: Id, workspace_id: Id) -> Mapped:
    """Set the workspace in which a task is worked on."""
    task, workspace = transaction.get(Task, task_id), transaction.get(Workspace, workspace_id)
    if task.workflow_id != workspace.workflow_id:
        raise _mismatch(task, workspace.workflow_id)
    if workspace.status != "active":
        raise OrchestrationError(
            "INVALID_STATE", f"workspace {workspace_id} is {workspace.status!r}", "Assign an active one."
        )
    _assign(transaction, task, workspace_id)
    return {"success": True}


# How a workspace is stored and changed.


@dataclass(frozen=True)
class NewWorkspace:
    """A workspace that is to be made: its workflow, its branch, and its tasks."""

    workflow_id: str
    branch: str
    base_branch: str | None
    task_ids: Sequence[str]


def create(transaction: PlanTransaction, new: NewWorkspace, path: str, workspace_id: str | None = None) -> Mapped:
    """Store a workspace, perhaps with an id that was made before, and return what agents are told of it."""
    transaction.get(Workflow, new.workflow_id)
    tasks = tasks_of(transaction, new)
    same_place = transaction.all(Workspace, _ACTIVE_AT, path=path)
    values = {"path": path, "branch": new.branch, "base_branch": new.base_branch, "status": "active"}
    chosen_id = {"id": workspace_id} if workspace_id else {}
    workspace = transaction.add(Workspace, workflow_id=new.workflow_id, **values, **chosen_id)
    for task in tasks:
        _assign(transaction, task, workspace.id)
    transaction.emit("workspace:created", new.workflow_id, workspace.reply())
    warning = f"workspace {same_place[0].id} is active at the same path" if same_place else None
    return {"id": workspace.id, **({"warnings": [warning]} if warning else {})}


def tasks_of(transaction: PlanTransaction, new: NewWorkspace) -> list[Task]:
    """Return the tasks for which a workspace is to be.

    Raises:
        OrchestrationError: TASK_NOT_FOUND; WORKFLOW_MISMATCH, one is of another workflow.
    """
    tasks = [transaction.get(Task, task_id) for task_id in dict.fromkeys(new.task_ids)]
    for task in tasks:
        if task.workflow_id != new.workflow_id:
            raise _mismatch(task, new.workflow_id)
    return tasks


def update(transaction: PlanTransaction, workspace_id: str, status: str | None, merge_commit: str | None) -> Mapped:
    """Change a workspace.

    Raises:
        OrchestrationError: As `check_update`.
    """
    workspace = transaction.get(Workspace, workspace_id)
    check_update(workspace, status, merge_commit)
    values = {"status": status, "merge_commit": merge_commit}
    values = {name: value for name, value in values.items() if value is not None}
    changed = transaction.change(Workspace, workspace_id, **values)
    transaction.emit("workspace:updated", workspace.workflow_id, changed.reply())
    return {"success": True}


def check_update(workspace: Workspace, status: str | None, merge_commit: str | None) -> None:
    """Refuse a change that is not possible.

    Raises:
        OrchestrationError: INVALID_TRANSITION or MISSING_MERGE_COMMIT.
    """
    if status is not None and status != workspace.status:
        check_transition("workspace", WORKSPACE_TRANSITIONS, workspace.status, status)
    if status == "merged" and not (merge_commit or workspace.merge_commit):
        raise OrchestrationError(
            "MISSING_MERGE_COMMIT", "a merged workspace needs a merge_commit", "Give the commit that merged it."
        )


def _assign(transaction: PlanTransaction, task: Task, workspace_id: str) -> None:
    renew_leases_of_holder(transaction, task)
    assigned = transaction.change(Task, task.id, workspace_id=workspace_id)
    transaction.emit("task:updated", task.workflow_id, assigned.event())


def _mismatch(task: Task, workflow_id: str) -> OrchestrationError:
    return OrchestrationError(
        "WORKFLOW_MISMATCH",
        f"task {task.id} belongs to workflow {task.workflow_id}, not to {workflow_id}",
        "Use a workspace of the task's own workflow.",
    )
