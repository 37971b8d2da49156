"""The tools about workspaces, and the claim, which may make one.

Between two transactions git runs. What it has made is removed again when the second one fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from deepwork.api import DeepWorkError, GitError, PathRefused, ToolCall, resolve_inside
from deepwork_orchestration import agents, claims, worktrees
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import Flag, Id, Name, Text, Texts
from deepwork_orchestration.desk import Desk, Request
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.models import Mapped, Task, Workflow, Workspace
from deepwork_orchestration.repositories import normalized
from deepwork_orchestration.states import WORKSPACE_TRANSITIONS, WorkspaceStatus, check_transition

POINTERS = "filters of git are off: files that Git LFS keeps elsewhere are pointers in this worktree"


async def workspace_create(
    desk: Desk,
    call: ToolCall,
    workflow_id: Id,
    branch: Name,
    path: Text | None = None,
    base_branch: Name | None = None,
    task_ids: Texts | None = None,
    *,
    create_worktree: Flag = False,
    request: Request | None = None,
) -> Mapped:
    """Register a workspace. create_worktree makes the git worktree too; then path may be left out."""
    recorded = await desk.recorded(call, request)
    if recorded is not None:
        return dict(recorded)

    def store(place: str) -> Callable[[Act], Mapped]:
        return lambda act: _create(act, workflow_id, place, branch, base_branch, task_ids or [])

    if not create_worktree:
        if path is None:
            suggestion = "Give path, or create_worktree: true."
            raise OrchestrationError("MISSING_PATH", "a workspace needs a path", suggestion)
        return await desk.write(call, store(normalized(path)), request)
    repository = await desk.read(call, lambda act: _repository_path(act, workflow_id, task_ids or []))
    default = desk.context.project_root / worktrees.FOLDER / branch.replace("/", "-")
    folder = default if path is None else Path(normalized(path))

    async def stored(place: str) -> Mapped:
        return await desk.write(call, store(place), request)

    return await _with_worktree(desk, repository, folder, branch, base_branch, stored)


async def workspace_update(
    desk: Desk,
    call: ToolCall,
    id: Id,  # noqa: A002
    status: WorkspaceStatus | None = None,
    merge_commit: Name | None = None,
    *,
    cleanup_worktree: Flag = False,
    request: Request | None = None,
) -> Mapped:
    """Change a workspace; merged needs merge_commit. cleanup_worktree removes a worktree without uncommitted work."""
    recorded = await desk.recorded(call, request)
    if recorded is not None:
        return dict(recorded)
    if cleanup_worktree:
        workspace, repository = await desk.read(call, lambda act: _with_repository(act, id, status, merge_commit))
        await _remove_worktree(desk, workspace, repository)
    return await desk.write(call, lambda act: _update(act, id, status, merge_commit), request)


def workspace_list(act: Act, workflow_id: Id, status: list[WorkspaceStatus] | None = None) -> Mapped:
    """List workspaces of a workflow, oldest first."""
    act.records.workflow(workflow_id)
    return {"workspaces": [workspace.reply() for workspace in act.records.workspaces(workflow_id, status)]}


def task_assign_workspace(act: Act, task_id: Id, workspace_id: Id) -> Mapped:
    """Say in which workspace a task is worked on."""
    task, workspace = act.records.task(task_id), act.records.workspace(workspace_id)
    if task.workflow_id != workspace.workflow_id:
        raise _mismatch(task, workspace.workflow_id)
    if workspace.status != "active":
        raise OrchestrationError(
            "INVALID_STATE", f"workspace {workspace_id} is {workspace.status!r}", "Assign one that is active."
        )
    _assign(act, task, workspace_id)
    return {"success": True}


async def task_claim(
    desk: Desk, call: ToolCall, task_id: Id, agent_id: Id, *, request: Request | None = None
) -> Mapped:
    """Claim a task for an agent. success false names who has it already."""
    reply = dict(await desk.write(call, lambda act: agents.claim(act, task_id, agent_id), request))
    wants_workspace = reply.pop("wants_workspace", False)
    if reply["success"]:
        desk.bindings.of(call).bind(task_id, agent_id, reply["fence"])
    return reply | (await _workspace_of_claim(desk, call, task_id) if wants_workspace else {})


# Worktrees.


async def _workspace_of_claim(desk: Desk, call: ToolCall, task_id: str) -> Mapped:
    """Give the workspace that a claim brings with it. If git fails the claim stands, and the reply says why."""
    task, workflow, repository, workspace = await desk.read(call, lambda act: _wanted_workspace(act, task_id))
    if not desk.has_repository(repository):
        return {}
    if workspace is not None and workspace.status == "active" and worktrees.is_folder(workspace.path):
        return {"workspace_id": workspace.id, "path": workspace.path}
    path = desk.context.project_root / worktrees.FOLDER / task.id
    branch = f"deepwork/{workflow.id}/{task.id}"

    async def store(place: str) -> Mapped:
        return await desk.write(call, lambda act: _create(act, workflow.id, place, branch, None, [task.id]))

    try:
        created = await _with_worktree(desk, repository, path, branch, None, store)
    except DeepWorkError as error:
        return {"workspace_error": error.message}
    return {"workspace_id": created.pop("id"), **created}


async def _with_worktree(
    desk: Desk,
    repository: str | None,
    path: Path,
    branch: str,
    base: str | None,
    store: Callable[[str], Awaitable[Mapped]],
) -> Mapped:
    """Make a worktree, and store its workspace; without the one there is not the other."""
    git = await desk.git() if desk.has_repository(repository) else None
    if git is None:
        raise OrchestrationError(
            "MISSING_REPO_PATH",
            f"this server's project is not the workflow's git repository ({repository})",
            "Call a server that serves that repository, or make the worktree there and register it with path.",
        )
    place = _allowed(desk, path)
    try:
        worktree = await worktrees.add(git, place, branch, base)
    except GitError as error:
        raise OrchestrationError("INVALID_STATE", error.message, "Nothing was changed.") from None
    try:
        reply = await store(worktree.path)
    except BaseException:
        await worktrees.undo(git, worktree)
        raise
    warnings = [*reply.pop("warnings", ()), *([POINTERS] if worktree.has_pointers else ())]
    return {**reply, "path": worktree.path, **({"warnings": warnings} if warnings else {})}


async def _remove_worktree(desk: Desk, workspace: Workspace, repository: str | None) -> None:
    git = await desk.git() if desk.has_repository(repository) else None
    if git is None:
        raise OrchestrationError(
            "MISSING_REPO_PATH",
            f"this server's project is not the workflow's git repository ({repository})",
            "Call a server that serves that repository.",
        )
    place = _allowed(desk, Path(workspace.path))
    try:
        await worktrees.remove(git, str(place))
    except GitError as error:
        raise OrchestrationError("INVALID_STATE", error.message, "Nothing was changed.") from None


def _allowed(desk: Desk, path: Path) -> Path:
    """Refuse a folder outside of the project and of the folders that its user allows."""
    try:
        resolved, _ = resolve_inside(str(path), desk.context.workspace.output_roots)
        return resolved
    except PathRefused as error:
        raise OrchestrationError(
            "INVALID_INPUT",
            f"path {str(path)!r} {error.message}",
            "Leave it out, or let the user allow the folder: allowed_output_roots.",
        ) from None


# What is done in transactions.


def _repository_path(act: Act, workflow_id: str, task_ids: list[str]) -> str | None:
    """Give the repository of a workflow, after the checks that would refuse the workspace."""
    workflow = act.records.workflow(workflow_id)
    _tasks_of(act, workflow_id, task_ids)
    return act.records.repository_path(workflow)


def _with_repository(
    act: Act, workspace_id: str, status: str | None, merge_commit: str | None
) -> tuple[Workspace, str | None]:
    workspace = act.records.workspace(workspace_id)
    _check_update(workspace, status, merge_commit)
    return workspace, act.records.repository_path(act.records.workflow(workspace.workflow_id))


def _wanted_workspace(act: Act, task_id: str) -> tuple[Task, Workflow, str | None, Workspace | None]:
    task = act.records.task(task_id)
    workflow = act.records.workflow(task.workflow_id)
    workspace = act.records.workspace(task.workspace_id) if task.workspace_id else None
    return task, workflow, act.records.repository_path(workflow), workspace


def _create(act: Act, workflow_id: str, path: str, branch: str, base_branch: str | None, task_ids: list[str]) -> Mapped:
    act.records.workflow(workflow_id)
    tasks = _tasks_of(act, workflow_id, task_ids)
    same_place = act.records.active_workspaces_at(path)
    workspace = act.records.add(
        Workspace, workflow_id=workflow_id, path=path, branch=branch, base_branch=base_branch, status="active"
    )
    for task in tasks:
        _assign(act, task, workspace.id)
    act.emit("workspace:created", workflow_id, workspace.reply())
    warning = f"workspace {same_place[0].id} is active at the same path" if same_place else None
    return {"id": workspace.id, **({"warnings": [warning]} if warning else {})}


def _tasks_of(act: Act, workflow_id: str, task_ids: list[str]) -> list[Task]:
    tasks = [act.records.task(task_id) for task_id in dict.fromkeys(task_ids)]
    for task in tasks:
        if task.workflow_id != workflow_id:
            raise _mismatch(task, workflow_id)
    return tasks


def _update(act: Act, workspace_id: str, status: str | None, merge_commit: str | None) -> Mapped:
    workspace = act.records.workspace(workspace_id)
    _check_update(workspace, status, merge_commit)
    values = {"status": status, "merge_commit": merge_commit}
    values = {name: value for name, value in values.items() if value is not None}
    changed = act.records.change(Workspace, workspace_id, **values)
    act.emit("workspace:updated", workspace.workflow_id, changed.reply())
    return {"success": True}


def _check_update(workspace: Workspace, status: str | None, merge_commit: str | None) -> None:
    if status is not None and status != workspace.status:
        check_transition("workspace", WORKSPACE_TRANSITIONS, workspace.status, status)
    if status == "merged" and not (merge_commit or workspace.merge_commit):
        raise OrchestrationError(
            "MISSING_MERGE_COMMIT", "a merged workspace needs a merge_commit", "Give the commit that merged it."
        )


def _assign(act: Act, task: Task, workspace_id: str) -> None:
    claims.beat_binding(act, task)
    assigned = act.records.change(Task, task.id, workspace_id=workspace_id)
    act.emit("task:updated", task.workflow_id, assigned.event())


def _mismatch(task: Task, workflow_id: str) -> OrchestrationError:
    return OrchestrationError(
        "WORKFLOW_MISMATCH",
        f"task {task.id} belongs to workflow {task.workflow_id}, not to {workflow_id}",
        "Use a workspace of the task's own workflow.",
    )
