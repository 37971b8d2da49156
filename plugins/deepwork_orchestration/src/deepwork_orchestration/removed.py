"""Worktrees that were moved aside: what `deepwork doctor` finds of them, and how people remove them for good."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from deepwork.api import Check, Finding, Git, Level, PluginContext
from deepwork.errors import GitError
from deepwork_orchestration import losses, worktree_entries, worktrees


class Removed(NamedTuple):
    """A folder that was moved aside: why git cannot remove it, if it cannot, and what would be lost with it."""

    place: Path
    obstacle: str | None = None
    reasons: tuple[str, ...] = ()


def check(context: PluginContext) -> Check:
    """Make the check `worktrees`."""
    return Check("worktrees", partial(_examine, context.project_root))


def places(root: Path) -> list[Path]:
    """List what was moved aside in a project."""
    folder = worktrees.removed_folder(root)
    try:
        return [folder / name for name in sorted(os.listdir(folder))]
    except (FileNotFoundError, NotADirectoryError):
        return []


async def look(git: Git, place: Path) -> Removed:
    """Return what would be lost with a worktree that was moved aside, and whether git can remove it."""
    try:
        entry = await worktree_entries.find_entry(git, place)
        tree = await git.worktree_around(place) if entry else None
        if entry is None or tree is None or tree.top != place:
            return Removed(place, "it is not a worktree of this repository, so remove it by hand if you do not need it")
        if entry.lock is not None:
            return Removed(place, "it is locked: `git worktree unlock` first")
        branch = await tree.try_run("symbolic-ref", "--quiet", "--short", "HEAD")
        reasons = await losses.losses(git, tree, entry, branch.stdout.decode().strip())
        return Removed(place, None, tuple(reasons))
    except GitError as error:
        return Removed(place, error.message)


async def remove(git: Git, place: Path) -> None:
    """Remove a worktree, with all that is in it.

    Raises:
        GitError: git cannot.
    """
    await git.run("worktree", "remove", "--force", "--", str(place))


def _examine(root: Path) -> Iterator[Finding]:
    moved_aside = places(root)
    if not moved_aside:
        yield Finding(Level.OK, "no worktree of an agent was moved aside")
    for place in moved_aside:
        text = f"{place.relative_to(root)} was moved aside by an agent: something of it may be nowhere else"
        yield Finding(Level.INFO, text, "deepwork plan clean --removed")
