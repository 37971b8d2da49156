"""The tools about workspaces, and the claim, which may make one.

Between two transactions git runs. What it has made is taken back when the second one fails.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from anyio import CancelScope

from deepwork.api import DeepWorkError, Git, GitError, PathRefused, ToolCall, resolve_inside
from deepwork_orchestration import agents, claims, git_names, worktrees
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

    async def store(place: str, workspace_id: str | None = None) -> Mapped:
        return await desk.write(
            call,
            lambda act: _create(act, workflow_id, place, branch, base_branch, task_ids or [], workspace_id),
            request,
        )

    if not create_worktree:
        if path is None:
            suggestion = "Give path, or create_worktree: true."
            raise OrchestrationError("MISSING_PATH", "a workspace needs a path", suggestion)
        return await store(normalized(path))
    repository = await desk.read(call, lambda act: _repository_path(act, workflow_id, task_ids or []))
    default = desk.context.project_root / worktrees.FOLDER / branch.replace("/", "-")
    folder = default if path is None else Path(normalized(path))
    return await _with_worktree(desk, call, repository, folder, branch, base_branch, store)


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
    """Change a workspace; merged needs merge_commit, a full id. cleanup_worktree removes its worktree, or moves it."""
    recorded = await desk.recorded(call, request)
    if recorded is not None:
        return dict(recorded)
    if not cleanup_worktree and merge_commit is None:
        return await desk.write(call, lambda act: _update(act, id, status, merge_commit), request)
    workspace, repository = await desk.read(call, lambda act: _with_repository(act, id, status, merge_commit))
    if merge_commit is not None:
        await _check_merge_commit(desk, repository, merge_commit)
    outcome = await _remove_worktree(desk, workspace, repository) if cleanup_worktree else {}
    try:
        return await desk.write(call, lambda act: _update(act, id, status, merge_commit) | outcome, request)
    except OrchestrationError as error:
        if not (outcome.get("removed") or "moved_to" in outcome):
            raise
        what = f"moved to {outcome['moved_to']}" if "moved_to" in outcome else "removed"
        done = f"The worktree was {what}, and nothing else was changed."
        raise OrchestrationError(error.code, error.message, done) from None


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

    async def store(place: str, workspace_id: str) -> Mapped:
        return await desk.write(
            call, lambda act: _create(act, workflow.id, place, branch, None, [task.id], workspace_id)
        )

    try:
        if workspace is not None:
            git = await _repository(desk, repository, "")
            await worktrees.forget(git, Path(workspace.path), workspace.branch, workspace.id)
        created = await _with_worktree(desk, call, repository, path, branch, None, store)
    except DeepWorkError as error:
        return {"workspace_error": f"{error.message}. {error.hint}" if error.hint else error.message}
    return {"workspace_id": created.pop("id"), **created}


async def _with_worktree(
    desk: Desk,
    call: ToolCall,
    repository: str | None,
    path: Path,
    branch: str,
    base: str | None,
    store: Callable[[str, str], Awaitable[Mapped]],
) -> Mapped:
    """Make a worktree, and store its workspace; without the one there is not the other."""
    from deepwork_orchestration.records import new_workspace_id

    git = await _repository(
        desk,
        repository,
        "Call a server that serves that repository, or make the worktree there and register it with path.",
    )
    place, workspace_id = _allowed(desk, path), new_workspace_id()
    try:
        worktree = await worktrees.add(git, place, branch, base, workspace_id)
    except GitError as error:
        raise OrchestrationError("INVALID_STATE", error.message, "Nothing was changed.") from None
    try:
        reply = await store(str(worktree.path), workspace_id)
    except BaseException as error:
        left = await _undo(desk, call, git, worktree, workspace_id)
        if left and isinstance(error, DeepWorkError):
            code = error.code if isinstance(error, OrchestrationError) else "INVALID_STATE"
            raise OrchestrationError(code, error.message, worktrees.left_over(left)) from None
        raise
    warnings = [*reply.pop("warnings", ()), *([POINTERS] if worktree.has_pointers else ())]
    return {**reply, "path": str(worktree.path), **({"warnings": warnings} if warnings else {})}


async def _undo(desk: Desk, call: ToolCall, git: Git, worktree: worktrees.Worktree, workspace_id: str) -> list[str]:
    """Take back a worktree whose workspace was not stored, and name what is left.

    The transaction may have succeeded although the call failed: then the worktree belongs to its workspace.
    """
    with CancelScope(shield=True):
        try:
            await desk.read(call, lambda act: act.records.workspace(workspace_id))
            left = [f"workspace {workspace_id} with the worktree {worktree.path}"]
        except OrchestrationError:
            left = await worktrees.undo(git, worktree)
        except Exception:  # noqa: BLE001 - whether it was stored is unknown, whatever keeps the database from answering
            left = [f"a worktree in {worktree.path}"]
    if left:
        desk.context.log.warning("a call failed, and left %s", ", ".join(left))
    return left


async def _remove_worktree(desk: Desk, workspace: Workspace, repository: str | None) -> Mapped:
    """Remove the worktree of a workspace, and say what has become of it."""
    git = await _repository(desk, repository, "Call a server that serves that repository.")
    try:
        resolved, _ = resolve_inside(workspace.path, desk.context.workspace.output_roots)
        removal = await worktrees.remove(git, resolved, workspace.branch, workspace.id)
    except PathRefused as error:
        problem = f"path {workspace.path!r} {error.message}"
        raise OrchestrationError("INVALID_INPUT", problem, "Remove the worktree by hand.") from None
    except GitError as error:
        raise OrchestrationError("INVALID_STATE", error.message, "Nothing was changed.") from None
    if removal.moved_to is not None:
        return {"moved_to": str(removal.moved_to), "reasons": removal.reasons}
    return {"removed": removal.was_there}


async def _check_merge_commit(desk: Desk, repository: str | None, merge_commit: str) -> None:
    """Refuse a commit that does not exist, where its repository is served."""
    git_names.check_commit_id(merge_commit)
    if desk.has_repository(repository):
        try:
            if git := await desk.git():
                await git_names.check_commit(git, merge_commit)
        except GitError as error:
            raise OrchestrationError("INVALID_STATE", error.message, error.hint) from None


async def _repository(desk: Desk, repository: str | None, suggestion: str) -> Git:
    try:
        git = await desk.git() if desk.has_repository(repository) else None
    except GitError as error:
        raise OrchestrationError("INVALID_STATE", error.message, error.hint) from None
    if git is None:
        raise OrchestrationError(
            "MISSING_REPO_PATH",
            f"this server's project is not the workflow's git repository ({repository})",
            suggestion,
        )
    return git


def _allowed(desk: Desk, path: Path) -> worktrees.Place:
    """Refuse every place but those below `.deepwork/worktrees`, and below the folders that the user allows."""
    project, *extra_roots = desk.context.workspace.output_roots
    try:
        resolved, root = resolve_inside(str(path), (project / worktrees.FOLDER, *extra_roots))
        below = resolved.relative_to(root)
        hidden = next((part for part in below.parts if part.startswith(".")), None)
        if hidden is not None:
            raise PathRefused(f"has a part that begins with a dot: {hidden!r}")
        if not below.parts:
            raise PathRefused("is the folder for worktrees itself")
        if root == Path(os.path.realpath(project / worktrees.FOLDER)) != project / worktrees.FOLDER:
            raise PathRefused(f"is no place for a worktree: {worktrees.FOLDER} is a link")
        if resolved.is_relative_to(project) and root != project / worktrees.FOLDER:
            raise PathRefused(f"lies in the project, but not below {worktrees.FOLDER}")
        if any(_is_git_folder(folder) for folder in (resolved, *resolved.parents)):
            raise PathRefused("lies in a folder of git's own")
        return worktrees.Place(resolved, root)
    except PathRefused as error:
        reason = error.message
        if reason.startswith("lies outside"):
            reason = f"lies neither below {worktrees.FOLDER} nor below a folder of allowed_output_roots"
        raise OrchestrationError(
            "INVALID_INPUT",
            f"path {str(path)!r} {reason}",
            "Leave it out, or let the user allow a folder: allowed_output_roots.",
        ) from None


def _is_git_folder(folder: Path) -> bool:
    """True if git would take a folder for a repository's own."""
    return all((folder / name).exists() for name in ("HEAD", "objects", "refs"))


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


def _create(
    act: Act,
    workflow_id: str,
    path: str,
    branch: str,
    base_branch: str | None,
    task_ids: list[str],
    workspace_id: str | None,
) -> Mapped:
    act.records.workflow(workflow_id)
    tasks = _tasks_of(act, workflow_id, task_ids)
    same_place = act.records.active_workspaces_at(path)
    values = {"path": path, "branch": branch, "base_branch": base_branch, "status": "active"}
    chosen_id = {"id": workspace_id} if workspace_id else {}
    workspace = act.records.add(Workspace, workflow_id=workflow_id, **values, **chosen_id)
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
