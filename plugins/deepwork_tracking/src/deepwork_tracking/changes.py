"""Which files have changed since a snapshot, relative to what they were then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deepwork.api import Git
from deepwork.errors import GitError
from deepwork_tracking.listing import readable
from deepwork_tracking.snapshots import (
    SUBMODULE,
    OpenGit,
    TreeSnapshot,
    algorithm_of,
    differences,
    list_files,
    open_git,
    read_states,
    unread_warnings,
)
from deepwork_tracking.states import REPOSITORY, UNREAD

LETTERS = {"A": "added", "C": "added", "D": "deleted", "M": "modified", "T": "modified", "U": "modified"}


@dataclass(frozen=True)
class FileChanges:
    """The files that have changed since a snapshot.

    Attributes:
        added: Files that did not exist then; like the others, paths relative to the top folder, sorted.
        modified: Files with another content or mode than then.
        deleted: Files that no longer exist.
        dirty_before: Those of all of them that git already saw as changed then.
        warnings: What could not be found out.
    """

    added: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    dirty_before: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        return [*self.added, *self.modified, *self.deleted]


async def changes_since(snapshot: TreeSnapshot, open_: OpenGit) -> FileChanges:
    """Compare the working tree with a snapshot of it.

    Raises:
        GitError: git gave no answer.
    """
    top = Path(snapshot.toplevel)
    if snapshot.type == "checksum":
        return await _since_checksums(snapshot, await _git_or_none(top, open_))
    git = await open_git(top, open_)
    if git is None or git.top != top:
        raise GitError(f"{snapshot.toplevel!r} is no longer the top of a git working tree")
    return await _since_commit(snapshot, git)


async def _since_commit(snapshot: TreeSnapshot, git: Git) -> FileChanges:
    warnings = []
    try:
        tracked, untracked = await differences(git, snapshot.id)
    except GitError:
        # git is asked whether the commit exists only now: hardly ever it does not.
        if await git.commit_of(snapshot.id) is not None:
            raise
        warnings.append(
            f"the commit {snapshot.id} at which the task began no longer exists, so commits of the task are not listed"
        )
        head = await git.commit_of("HEAD")
        tracked, untracked = await differences(git, head) if head else ({}, [])
    # A path in both lists was taken out of the index, and its file has stayed: git calls it deleted.
    before = snapshot.states | {
        path: tracked[path].state for path in untracked if path in tracked and path not in snapshot.states
    }
    known = (*before.items(), *((path, entry.state) for path, entry in tracked.items()))
    submodules = frozenset(path for path, state in known if state and state.startswith(SUBMODULE))
    after, unread = await read_states(git, git.top, before, algorithm_of(snapshot.id), submodules)
    words: dict[str, str | None] = {path: LETTERS.get(entry.letter, "modified") for path, entry in tracked.items()}
    words.update((path, "added") for path in untracked if not path.endswith("/"))
    words |= _compare(before, after)
    warnings += [*unread_warnings(unread), *_new_repositories(untracked, before)]
    return _file_changes(words, snapshot.states, warnings)


async def _git_or_none(top: Path, open_: OpenGit) -> Git | None:
    """Return git if it can list the files of this folder; contents are compared without it."""
    try:
        git = await open_git(top, open_)
    except GitError:
        return None
    return git if git and git.top == top else None


async def _since_checksums(snapshot: TreeSnapshot, git: Git | None) -> FileChanges:
    top = Path(snapshot.toplevel)
    files = [path for path in await list_files(git, top) if snapshot.last is None or path <= snapshot.last]
    after, unread = await read_states(git, top, snapshot.states, "sha1")
    words: dict[str, str | None] = {path: "added" for path in files if not path.endswith("/")}
    words |= _compare(snapshot.states, after)
    # Of a file that was not read at one of the two moments nothing is known, unless it is new or gone.
    words |= {
        path: None for path, old in snapshot.states.items() if after[path] and old and UNREAD in (old, after[path])
    }
    repositories = _new_repositories(files, snapshot.states)
    return _file_changes(words, (), [*snapshot.warnings, *unread_warnings(unread), *repositories])


def _compare(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return of each file whether it was added, modified or deleted; None if it is what it was."""
    words: dict[str, str | None] = {}
    for path, old in before.items():
        new = after[path]
        if REPOSITORY in (old, new) or (old == new and old != UNREAD):
            words[path] = None
        elif old is None:
            words[path] = "added"
        else:
            words[path] = "modified" if new else "deleted"
    return words


def _new_repositories(untracked: Iterable[str], before: Mapping[str, str | None]) -> list[str]:
    return [
        f"{readable(path)} is a repository of its own, and its files are not listed"
        for path in untracked
        if path.endswith("/") and path not in before
    ]


def _file_changes(words: Mapping[str, str | None], dirty: Iterable[str], warnings: Iterable[str]) -> FileChanges:
    def paths(word: str) -> tuple[str, ...]:
        return tuple(sorted(readable(path) for path, change in words.items() if change == word))

    return FileChanges(
        added=paths("added"),
        modified=paths("modified"),
        deleted=paths("deleted"),
        dirty_before=tuple(sorted(readable(path) for path in dirty if words.get(path))),
        warnings=tuple(dict.fromkeys(warnings)),
    )
