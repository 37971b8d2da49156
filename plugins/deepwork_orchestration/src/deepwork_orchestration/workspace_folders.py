"""Workspaces with their git worktrees: the tools that make and remove them, and the worktree that a claim brings.

Between two transactions git runs. What it has made is taken back when the second one fails.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from anyio import CancelScope

from deepwork.api import Git, ToolCall
from deepwork.errors import DeepWorkError, GitError, PathRefused
from deepwork.paths.paths import resolve_inside
from deepwork_orchestration import git_names, repositories, workspaces, worktrees
from deepwork_orchestration.arguments import Flag, Id, Name, Text, Texts
from deepwork_orchestration.database import PlanDatabase, Request
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.models import Mapped, Task, Workflow, Workspace
from deepwork_orchestration.states import WorkspaceStatus
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_orchestration.workspaces import NewWorkspace
from deepwork_sql import new_id

POINTERS = "filters of git are off: files that Git LFS keeps elsewhere are pointers in this worktree"


# The tools.


async def workspace_create(
    database: PlanDatabase,
    call: ToolCall,
    request: Request | None,
    /,
    workflow_id: Id,
    branch: Name,
    path: Text | None = None,
    base_branch: Name | None = None,
    task_ids: Texts | None = None,
    *,
    create_worktree: Flag = False,
) -> Mapped:
    """Register a workspace. create_worktree makes the git worktree too; then path may be left out."""
    if answer := await database.recorded(call, request):
        return dict(answer.result)
    new = NewWorkspace(workflow_id, branch, base_branch, task_ids or [])
    if create_worktree:
        repository = await database.read(call, lambda transaction: _repository_path(transaction, new))
        default = database.context.project_root / worktrees.FOLDER / branch.replace("/", "-")
        folder = default if path is None else Path(repositories.normalized(path))
        return await _Making(database, call, request).make(repository, folder, new)
    if path is None:
        suggestion = "Give path, or create_worktree: true."
        raise OrchestrationError("MISSING_PATH", "a workspace needs a path", suggestion)
    place = repositories.normalized(path)
    return await database.write(call, lambda transaction: workspaces.create(transaction, new, place), request)


async def workspace_update(
    database: PlanDatabase,
    call: ToolCall,
    request: Request | None,
    /,
    id: Id,  # noqa: A002
    status: WorkspaceStatus | None = None,
    merge_commit: Name | None = None,
    *,
    cleanup_worktree: Flag = False,
) -> Mapped:
    """Change a workspace; merged needs merge_commit, a full id. cleanup_worktree removes its worktree, or moves it."""
    if answer := await database.recorded(call, request):
        return dict(answer.result)

    def update(transaction: PlanTransaction) -> Mapped:
        return workspaces.update(transaction, id, status, merge_commit) | removed

    removed: Mapped = {}
    if cleanup_worktree or merge_commit is not None:
        workspace, repository = await database.read(
            call, lambda transaction: _with_repository(transaction, id, status, merge_commit)
        )
        if merge_commit is not None:
            await _check_merge_commit(database, repository, merge_commit)
        if cleanup_worktree:
            removed = await _remove_worktree(database, workspace, repository)
    try:
        return await database.write(call, update, request)
    except OrchestrationError as error:
        if not (removed.get("removed") or "moved_to" in removed):
            raise
        what = f"moved to {removed['moved_to']}" if "moved_to" in removed else "removed"
        outcome = f"The worktree was {what}, and nothing else was changed."
        raise OrchestrationError(error.code, error.message, outcome) from None


async def folder_of_claim(database: PlanDatabase, call: ToolCall, task_id: str) -> Mapped:
    """Return the workspace that a claim brings with it. If git fails the claim stands, and the reply says why."""
    place = await database.read(call, lambda transaction: _place_of_task(transaction, task_id))
    task, workspace = place.task, place.workspace
    if not database.has_repository(place.repository):
        return {}
    if workspace is not None and workspace.status == "active" and worktrees.is_folder(workspace.path):
        return {"workspace_id": workspace.id, "path": workspace.path}
    new = NewWorkspace(task.workflow_id, f"deepwork/{task.workflow_id}/{task.id}", None, [task.id])
    try:
        if workspace is not None:
            git = await _repository(database, place.repository, "")
            await worktrees.forget(git, Path(workspace.path), workspace.branch, workspace.id)
        folder = database.context.project_root / worktrees.FOLDER / task.id
        created = await _Making(database, call).make(place.repository, folder, new)
    except DeepWorkError as error:
        return {"workspace_error": f"{error.message}. {error.hint}" if error.hint else error.message}
    return {"workspace_id": created.pop("id"), **created}


# How a worktree is made and removed.


@dataclass(frozen=True)
class _Making:
    """One call that makes a worktree and stores its workspace; without the one there is not the other."""

    database: PlanDatabase
    call: ToolCall
    request: Request | None = None

    async def make(self, repository: str | None, folder: Path, new: NewWorkspace) -> Mapped:
        """Make both, and return what agents are told."""
        suggestion = "Call a server that serves that repository, or make the worktree there and register it with path."
        git = await _repository(self.database, repository, suggestion)
        place, workspace_id = _allowed(self.database, folder), new_id(Workspace.PREFIX)
        try:
            worktree = await worktrees.add(git, place, new.branch, new.base_branch, workspace_id)
        except GitError as error:
            raise OrchestrationError("INVALID_STATE", error.message, "Nothing was changed.") from None
        path = str(worktree.path)
        try:
            reply = await self.database.write(
                self.call, lambda transaction: workspaces.create(transaction, new, path, workspace_id), self.request
            )
        except BaseException as error:
            leftovers = await self._undo(git, worktree, workspace_id)
            if leftovers and isinstance(error, DeepWorkError):
                code = error.code if isinstance(error, OrchestrationError) else "INVALID_STATE"
                raise OrchestrationError(code, error.message, worktrees.left_over(leftovers)) from None
            raise
        warnings = [*reply.get("warnings", ()), *([POINTERS] if worktree.has_pointers else ())]
        return {**reply, "path": path, **({"warnings": warnings} if warnings else {})}

    async def _undo(self, git: Git, worktree: worktrees.Worktree, workspace_id: str) -> list[str]:
        """Take back a worktree whose workspace was not stored, and name what is left.

        The transaction may have succeeded although the call failed: then the worktree belongs to its workspace.
        """
        with CancelScope(shield=True):
            try:
                await self.database.read(self.call, lambda transaction: transaction.get(Workspace, workspace_id))
                leftovers = [f"workspace {workspace_id} with the worktree {worktree.path}"]
            except OrchestrationError:
                leftovers = await worktrees.undo(git, worktree)
            except Exception:  # noqa: BLE001 - whether it was stored is unknown, for any failure of the database
                leftovers = [f"a worktree in {worktree.path}"]
        if leftovers:
            self.database.context.log.warning("a call failed, and left %s", ", ".join(leftovers))
        return leftovers


async def _remove_worktree(database: PlanDatabase, workspace: Workspace, repository: str | None) -> Mapped:
    """Remove the worktree of a workspace, and return what has become of it."""
    git = await _repository(database, repository, "Call a server that serves that repository.")
    try:
        resolved, _ = resolve_inside(workspace.path, database.context.workspace.output_roots)
        removal = await worktrees.remove(git, resolved, workspace.branch, workspace.id)
    except PathRefused as error:
        problem = f"path {workspace.path!r} {error.message}"
        raise OrchestrationError("INVALID_INPUT", problem, "Remove the worktree by hand.") from None
    except GitError as error:
        raise OrchestrationError("INVALID_STATE", error.message, "Nothing was changed.") from None
    if removal.moved_to is not None:
        return {"moved_to": str(removal.moved_to), "reasons": removal.reasons}
    return {"removed": removal.was_there}


async def _check_merge_commit(database: PlanDatabase, repository: str | None, merge_commit: str) -> None:
    """Refuse a commit that does not exist, where its repository is served."""
    git_names.check_commit_id(merge_commit)
    if database.has_repository(repository):
        try:
            if git := await database.git():
                await git_names.check_commit(git, merge_commit)
        except GitError as error:
            raise OrchestrationError("INVALID_STATE", error.message, error.hint) from None


async def _repository(database: PlanDatabase, repository: str | None, suggestion: str) -> Git:
    try:
        git = await database.git() if database.has_repository(repository) else None
    except GitError as error:
        raise OrchestrationError("INVALID_STATE", error.message, error.hint) from None
    if git is None:
        raise OrchestrationError(
            "MISSING_REPO_PATH",
            f"this server's project is not the workflow's git repository ({repository})",
            suggestion,
        )
    return git


def _allowed(database: PlanDatabase, path: Path) -> worktrees.Place:
    """Refuse every place but those below `.deepwork/worktrees`, and below the folders that the user allows."""
    project, *extra_roots = database.context.workspace.output_roots
    try:
        resolved, root = resolve_inside(str(path), (project / worktrees.FOLDER, *extra_roots))
        below = resolved.relative_to(root)
        hidden = next((part for part in below.parts if part.startswith(".")), None)
        if hidden is not None:
            raise PathRefused(f"has a part that begins with a dot: {hidden!r}")
        if not below.parts:
            raise PathRefused("is the folder for worktrees itself")
        if root == Path(os.path.realpath(project / worktrees.FOLDER)) != project / worktrees.FOLDER:
            raise PathRefused(f"cannot hold a worktree: {worktrees.FOLDER} is a link")
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


# What is read before git runs.


def _repository_path(transaction: PlanTransaction, new: NewWorkspace) -> str | None:
    """Return the path of a workflow's repository, after the checks that would refuse the workspace."""
    workflow = transaction.get(Workflow, new.workflow_id)
    workspaces.tasks_of(transaction, new)
    return repositories.path_of(transaction, workflow)


def _with_repository(
    transaction: PlanTransaction, workspace_id: str, status: str | None, merge_commit: str | None
) -> tuple[Workspace, str | None]:
    workspace = transaction.get(Workspace, workspace_id)
    workspaces.check_update(workspace, status, merge_commit)
    workflow = transaction.get(Workflow, workspace.workflow_id)
    return workspace, repositories.path_of(transaction, workflow)


class _PlaceOfTask(NamedTuple):
    """Where a task is worked on: its repository, and its workspace if it has one."""

    task: Task
    repository: str | None
    workspace: Workspace | None


def _place_of_task(transaction: PlanTransaction, task_id: str) -> _PlaceOfTask:
    task = transaction.get(Task, task_id)
    workflow = transaction.get(Workflow, task.workflow_id)
    workspace = transaction.get(Workspace, task.workspace_id) if task.workspace_id else None
    return _PlaceOfTask(task, repositories.path_of(transaction, workflow), workspace)
