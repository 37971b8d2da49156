"""The branch and the commit of a working tree, read from its files: git itself is not run."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# What git writes into these files is short, except for packed references.
MAX_BYTES = 4096
MAX_PACKED_BYTES = 16 * 1024 * 1024
MAX_LINKS = 5

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = "refs/heads/"


class GitHead(NamedTuple):
    """What is checked out: a branch, unless HEAD is detached, and a commit, unless the branch has none yet."""

    branch: str | None
    commit: str | None


def read_head(root: Path) -> GitHead | None:
    """Read what is checked out where a folder lies; None outside of a repository, or where it cannot be read."""
    folder, above = str(root), ""
    while folder != above:
        entry = os.path.join(folder, ".git")
        if os.path.exists(entry):
            git = _git_folder(Path(entry))
            return _head(git) if git else None
        folder, above = os.path.dirname(folder), folder
    return None


def _git_folder(entry: Path) -> Path | None:
    """Follow the `.git` of a worktree or of a submodule, which is a file that names the folder."""
    if entry.is_dir():
        return entry
    name = _read(entry).removeprefix("gitdir:").strip()
    folder = entry.parent / name
    return folder if name and folder.is_dir() else None


def _head(git: Path) -> GitHead | None:
    text = _read(git / "HEAD")
    if _COMMIT.fullmatch(text):
        return GitHead(None, text)
    reference = text.removeprefix("ref:").strip()
    if not reference.startswith(_BRANCH) or ".." in reference.split("/") or not reference.isprintable():
        return None
    common = git / (_read(git / "commondir") or ".")  # a worktree has its own HEAD, and shares the branches
    return GitHead(reference.removeprefix(_BRANCH), _commit_of(common, reference))


def _commit_of(git: Path, reference: str) -> str | None:
    for _ in range(MAX_LINKS):
        text = _read(git / reference)
        if _COMMIT.fullmatch(text):
            return text
        if not text.startswith("ref: refs/"):
            break
        reference = text.removeprefix("ref: ")
    for line in _read(git / "packed-refs", MAX_PACKED_BYTES).splitlines():
        commit, _, name = line.partition(" ")
        if name == reference and _COMMIT.fullmatch(commit):
            return commit
    return None


def _read(file: Path, limit: int = MAX_BYTES) -> str:
    """Read a small regular file; "" if it is missing or larger."""
    with suppress(OSError, ValueError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size <= limit:
                return os.read(descriptor, status.st_size).decode().strip()
        finally:
            os.close(descriptor)
    return ""
