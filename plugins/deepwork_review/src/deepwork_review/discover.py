"""Where the rules are, and which files there are at all."""

from __future__ import annotations

import os
import posixpath
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from deepwork_review.git import Git
from deepwork_review.rules import FILE_NAME, BrokenFile, Rule, read_rules

# Other people's files, and what tools have made.
SKIPPED = frozenset(
    (
        *(".git", "node_modules", "bower_components", "vendor", "third_party", "site-packages", "__pycache__"),
        *(".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".eggs"),
    )
)
MAX_ENTRIES = 1_000_000
MAX_WALK_SECONDS = 20.0


@dataclass(frozen=True)
class Listing:
    """Files of a project, relative to it, and what has to be said about the search."""

    files: list[str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleBook:
    """All rules of a project, the deepest first, and the files that cannot be used."""

    rules: tuple[Rule, ...]
    broken: tuple[BrokenFile, ...]
    notes: tuple[str, ...] = ()


async def find_rules(root: Path, git: Git | None) -> RuleBook:
    """Find and read all `.deepreview` files.

    Raises:
        GitError: git gave no answer.
    """
    if git:
        tracked = await git.paths("ls-files", "-z", "--cached", "--", f":(glob)**/{FILE_NAME}")
        untracked = [path for path in await git.untracked() if posixpath.basename(path) == FILE_NAME]
        found = Listing(sorted({*tracked, *untracked}))
    else:
        found = await to_thread.run_sync(walk, root)
    return await to_thread.run_sync(_read_all, root, found)


async def find_files(root: Path, git: Git | None) -> Listing:
    """List all files: with git those that are tracked or could be."""
    if git:
        everything = await git.paths("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        return Listing(sorted({path for path in everything if not path.endswith("/") and not _skipped(path)}))
    return await to_thread.run_sync(walk, root)


def walk(root: Path) -> Listing:
    """List the files below a folder, without following links, into nobody else's repository, and within limits."""
    files: list[str] = []
    notes: list[str] = []
    folders = [""]
    deadline = time.monotonic() + MAX_WALK_SECONDS
    entries = 0
    while folders:
        folder = folders.pop()
        if entries > MAX_ENTRIES or time.monotonic() > deadline:
            notes.append(f"the search was cut off after {entries:,} entries: what lies deeper was not looked at")
            break
        try:
            with os.scandir(root / folder) as scan:
                found = list(scan)
        except OSError as error:
            notes.append(f"{folder or '.'} cannot be listed: {error.strerror}")
            continue
        entries += len(found)
        if folder and any(one.name == ".git" for one in found):
            notes.append(f"{folder}/ is a repository of its own and was left out")
            continue
        for one in found:
            path = f"{folder}/{one.name}" if folder else one.name
            if one.is_dir(follow_symlinks=False):
                if not _skipped_name(one.name):
                    folders.append(path)
            elif one.is_file(follow_symlinks=False) or one.is_symlink():
                files.append(path)
    return Listing(sorted(files), tuple(notes))


def _read_all(root: Path, found: Listing) -> RuleBook:
    here = [path for path in found.files if posixpath.basename(path) == FILE_NAME]
    notes = list(found.notes)
    vendored = [path for path in here if _skipped(path)]
    if vendored:
        shown = ", ".join(vendored[:5]) + (", …" if len(vendored) > 5 else "")
        notes.append(f"rules in folders of other people's code were left out: {shown}")
    rules: list[Rule] = []
    broken: list[BrokenFile] = []
    for path in _deepest_first(set(here) - set(vendored)):
        if not _exists(root / path):
            continue  # deleted, and git still has it
        read = read_rules(root, path)
        if isinstance(read, BrokenFile):
            broken.append(read)
        else:
            rules += read
    return RuleBook(tuple(rules), tuple(broken), tuple(notes))


def _deepest_first(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=lambda path: (-path.count("/"), path))


def _exists(path: Path) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _skipped(path: str) -> bool:
    return any(map(_skipped_name, path.split("/")[:-1]))


def _skipped_name(name: str) -> bool:
    return name in SKIPPED or name.endswith(".egg-info")
