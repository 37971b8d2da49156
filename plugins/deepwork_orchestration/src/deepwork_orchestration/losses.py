"""What would be lost if a worktree were removed, including what the configuration of its repository hides."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from anyio import to_thread

from deepwork.api import Git
from deepwork_orchestration.worktree_entries import MARK, Entry, exists

# Each of these settings can keep a change out of `git status`.
_SHOWN = {
    "core.checkStat": "default",
    "core.fileMode": "true",
    "core.ignoreCase": "false",
    "core.trustCtime": "true",
    "core.untrackedCache": "false",
    "status.aheadBehind": "false",
    "status.renames": "false",
    "status.showUntrackedFiles": "all",
}
_STATUS = (
    *(word for name, value in _SHOWN.items() for word in ("-c", f"{name}={value}")),
    *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching"),
    "--ignore-submodules=dirty",  # git looks into no submodule, whose configuration could name programs
)
# What git keeps of a worktree and what means nothing without it. All else stands for something that is not finished.
_MEANINGLESS = {
    *("HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "commondir", "config.worktree", "gitdir", "index"),
    *("info", "locked", "logs", "refs", MARK),
}
_COMMIT_ID = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_MAX_LOG_BYTES = 16 * 1024 * 1024
_MAX_NAMED = 3


async def losses(git: Git, tree: Git, entry: Entry, branch: str) -> list[str]:
    """Return what would be lost with a worktree; nothing if all of it stays in the repository.

    Args:
        git: git in the project.
        tree: git in the worktree.
        entry: What git keeps of the worktree.
        branch: The branch of its workspace. What its reflog remembers stays there.

    Raises:
        GitError: git gave no answer, so nothing may be concluded.
    """
    return [
        *_named("uncommitted, untracked or ignored files", [line[3:] for line in await tree.paths(*_STATUS)]),
        *_named("files whose changes git does not show", await _hidden_files(tree)),
        *_named("repositories of their own", await to_thread.run_sync(lambda: [*nested_repositories(entry.place)])),
        *await unfinished(git, entry, branch),
    ]


async def unfinished(git: Git, entry: Entry, branch: str) -> list[str]:
    """Return what of git's own files of a worktree would be lost, whether its folder is there or not.

    Raises:
        GitError: git gave no answer.
    """
    unfinished_work = set(os.listdir(entry.git_folder)) - _MEANINGLESS
    own_refs = [name for _, _, names in os.walk(entry.git_folder / "refs") for name in names]
    return [
        *_named("an operation in progress, or submodules", sorted(unfinished_work)),
        *_named("references of its own", own_refs),
        *_named("commits that no branch or tag holds", await _unheld_commits(git, entry, branch)),
    ]


def nested_repositories(place: Path) -> Iterator[str]:
    """Yield the `.git` of each repository below a worktree; `git status` shows none of a folder with tracked files."""
    for folder, folders, files in os.walk(place):
        for name in [*folders, *files]:
            if name.casefold() == ".git" and Path(folder) != place:
                yield os.path.relpath(os.path.join(folder, name), place)
        folders[:] = [name for name in folders if name.casefold() != ".git"]


async def _hidden_files(tree: Git) -> list[str]:
    """List files that git was told not to look at, and that are there: those left out of a sparse checkout are not."""
    flagged = (line.partition(" ") for line in await tree.paths("ls-files", "-v", "-z"))
    hidden = [path for flag, _, path in flagged if flag.islower() or flag == "S"]
    return [path for path in hidden if exists(tree.top / path)]


async def _unheld_commits(git: Git, entry: Entry, branch: str) -> list[str]:
    """List commits that only this worktree's HEAD or its log remembers."""
    texts = [_text(entry.git_folder / name) for name in ("HEAD", "ORIG_HEAD", "logs/HEAD")]
    mentioned = {commit for text in texts for commit in _COMMIT_ID.findall(text) if commit.strip("0")}
    if not mentioned:
        return []
    log = await git.try_run("log", "--walk-reflogs", "--format=%H", f"refs/heads/{branch}", "--")
    held = log.stdout.decode().split() if log.returncode == 0 else []
    revisions = [*sorted(mentioned), *(f"^{commit}" for commit in held)]
    unheld = await git.run(
        *("rev-list", "--ignore-missing", "--stdin", "--not", "--glob=refs/*"),
        stdin="\n".join(revisions).encode() + b"\n",
    )
    return unheld.decode().split()


def _text(file: Path) -> str:
    """Read what git has written; what is absent says nothing, and what is too long is not read to its end."""
    try:
        with open(file, "rb") as opened:
            return opened.read(_MAX_LOG_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _named(kind: str, names: Iterable[str]) -> list[str]:
    """Name a few of one kind, if there are any."""
    listed = [*names]
    if not listed:
        return []
    more = f" and {len(listed) - _MAX_NAMED} more" if len(listed) > _MAX_NAMED else ""
    return [f"{kind}: {', '.join(name[:100] for name in listed[:_MAX_NAMED])}{more}"]
