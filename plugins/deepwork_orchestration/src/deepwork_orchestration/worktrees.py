"""Worktrees of git for tasks: made and removed so that nothing is left half done.

Git runs with all filters off, so files that are kept elsewhere (Git LFS) stay pointers.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from deepwork.api import Folder, Git, GitError
from deepwork_orchestration.errors import OrchestrationError, invalid_input

# Out of git's sight, by a .gitignore of its own.
FOLDER = Path(".deepwork") / "worktrees"


class Worktree(NamedTuple):
    """A worktree that was made.

    Attributes:
        has_pointers: Whether it has files that only a filter would have filled with their content.
        is_new_branch: Whether the branch was made with it.
    """

    path: str
    branch: str
    has_pointers: bool
    is_new_branch: bool


async def check_branch(git: Git, branch: str) -> None:
    """Refuse a name that git does not take for a branch.

    Raises:
        OrchestrationError: INVALID_INPUT.
    """
    # A name that begins with - would be an option.
    if branch.startswith("-") or (await git.try_run("check-ref-format", "--branch", branch)).returncode:
        raise invalid_input("branch", f"is no name for a branch: {branch[:200]!r}", "Use letters, digits, / and -.")


async def add(git: Git, path: Path, branch: str, base: str | None) -> Worktree:
    """Make a worktree on a branch, which is made from `base` if there is none of that name.

    Raises:
        GitError: git cannot; nothing is left of the attempt.
        OrchestrationError: The branch or the base is none.
    """
    await check_branch(git, branch)
    start = "HEAD" if base is None else base
    if start.startswith("-"):
        raise invalid_input("base_branch", f"is no branch: {start[:200]!r}")
    if _exists(path):
        raise GitError(f"{str(path)!r} exists already")
    exists = not (await git.try_run("show-ref", "--verify", "--quiet", f"refs/heads/{branch}")).returncode
    _ignore(git.root, path)
    arguments = [str(path), branch] if exists else ["-b", branch, "--", str(path), start]
    await git.run("worktree", "prune")  # a folder that somebody has deleted would stand in the way
    try:
        await git.run("worktree", "add", "--quiet", *arguments)
    except BaseException:
        await _clear(git, path, None if exists else branch)
        raise
    return Worktree(str(path), branch, await _has_pointers(git, path), not exists)


async def undo(git: Git, worktree: Worktree) -> None:
    """Remove a worktree that has just been made, and its branch if that was made with it."""
    await _clear(git, Path(worktree.path), worktree.branch if worktree.is_new_branch else None)


async def remove(git: Git, path: str) -> None:
    """Remove a worktree, but not its branch.

    Raises:
        OrchestrationError: INVALID_STATE; it holds work that is not committed, or is no worktree of the repository.
        GitError: git cannot.
    """
    if not is_folder(path):
        await git.run("worktree", "prune")
        return
    # What a worktree's own configuration says holds only if git is opened there: its filters are switched off too.
    tree = await git.worktree_around(Path(path))
    if tree is None or tree.top != Path(path):
        raise OrchestrationError(
            "INVALID_STATE", f"{path!r} is no worktree of this repository", "Remove it by hand, if it is not needed."
        )
    # git looks into no submodule, and refuses to remove a worktree that has one.
    changes = await tree.run("status", "--porcelain", "--ignore-submodules=dirty")
    if changes:
        raise OrchestrationError(
            "INVALID_STATE",
            f"the worktree {path!r} holds work that is not committed: {_first_lines(changes)}",
            "Commit it on its branch, or remove it there, and call again.",
        )
    # Without --force, git itself refuses a worktree that changes meanwhile.
    await tree.run("-C", str(git.root), "worktree", "remove", path)


async def _clear(git: Git, path: Path, branch: str | None) -> None:
    """Remove what a failed attempt has left; a failure here must not hide the first one."""
    with suppress(GitError):
        if _exists(path):
            await git.try_run("worktree", "remove", "--force", str(path))
        await git.try_run("worktree", "prune")
        if branch is not None:
            await git.try_run("branch", "-D", "--", branch)


async def _has_pointers(git: Git, path: Path) -> bool:
    listed = await git.try_run("-C", str(path), "ls-files", "-z", "--", ":(attr:filter=lfs)")
    return bool(listed.stdout)


def is_folder(path: str) -> bool:
    """Say whether the folder of a worktree is still there."""
    return os.path.isdir(path)


def _exists(path: Path) -> bool:
    return os.path.lexists(path)


def _ignore(root: Path, path: Path) -> None:
    """Keep worktrees that lie in `.deepwork/worktrees` out of git's sight."""
    if path.is_relative_to(root / FOLDER):
        with Folder.open(root / FOLDER, inside=root, create=True) as folder:
            if ".gitignore" not in folder.names():
                folder.replace(".gitignore", b"*\n")


def _first_lines(changes: bytes) -> str:
    lines = changes.decode(errors="replace").splitlines()
    return "; ".join(line[:100] for line in lines[:3]) + (f" and {len(lines) - 3} more" if len(lines) > 3 else "")
