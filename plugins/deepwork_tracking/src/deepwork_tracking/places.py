"""The folders in which tasks may work: the project, its git worktrees, and the allowed output roots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deepwork.api import Git, PluginContext
from deepwork.errors import GitError, PathRefused
from deepwork.paths.paths import resolve_inside


async def find_folder(context: PluginContext, path: str | None) -> Path:
    """Resolve the folder of a task; without a path it is the project.

    Raises:
        PathRefused: Tasks of this project may not work in it.
    """
    if path is None:
        return context.project_root
    try:
        folder = _resolve(path, context.workspace.output_roots)
    except PathRefused:
        if not path.startswith("/"):
            raise
        folder = _resolve(path, (Path("/"),))
        if not await _is_in_worktree(context, folder):
            reason = "lies outside of the project, its git worktrees and allowed_output_roots"
            raise PathRefused(reason) from None
    return folder


def _resolve(path: str, roots: Sequence[Path]) -> Path:
    folder, _ = resolve_inside(path, roots)
    if not folder.is_dir():
        raise PathRefused("is not a folder")
    return folder


async def _is_in_worktree(context: PluginContext, folder: Path) -> bool:
    try:
        git = await context.git(Git)
        return git is not None and await git.worktree_around(folder) is not None
    except GitError:
        return False
