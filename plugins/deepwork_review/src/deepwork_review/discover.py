"""Finds the files of a project, and the rules among them."""

from __future__ import annotations

import os
import posixpath
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from deepwork_review.names import printable
from deepwork_review.rules import FILE_NAME, BrokenFile, Rule, read_rules
from deepwork_review.working_tree import WorkingTree

# Folders of other people's code, and of files that tools write.
SKIPPED = frozenset(
    (
        *(".git", "node_modules", "bower_components", "vendor", "third_party", "site-packages", "__pycache__"),
        *(".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".eggs"),
    )
)
MAX_ENTRIES = 1_000_000
MAX_WALK_SECONDS = 20.0
# Of all rules of a project together; what comes after that is reported as broken.
MAX_RULES = 2000
MAX_RULE_GLOBS = 5000
MAX_RULE_CHARACTERS = 8 * 1024 * 1024


@dataclass(frozen=True)
class FileListing:
    """Files of a project, relative to it, and what the search has left out."""

    files: list[str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleBook:
    """All rules of a project, the deepest first, and the files that cannot be used."""

    rules: tuple[Rule, ...]
    broken: tuple[BrokenFile, ...]
    notes: tuple[str, ...] = ()


async def find_rules(root: Path, tree: WorkingTree | None) -> RuleBook:
    """Find and read all `.deepreview` files.

    Raises:
        GitError: git gave no answer.
    """
    if tree:
        tracked = await tree.paths("ls-files", "-z", "--cached", "--", f":(glob)**/{FILE_NAME}")
        untracked = [path for path in await tree.untracked() if posixpath.basename(path) == FILE_NAME]
        listing = FileListing(sorted({*tracked, *untracked}))
    else:
        listing = await to_thread.run_sync(walk, root)
    return await to_thread.run_sync(_read_all, root, listing)


async def find_files(root: Path, tree: WorkingTree | None) -> FileListing:
    """List all files; in a git repository, all that are not ignored."""
    if tree:
        paths = await tree.paths("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        return FileListing(sorted({path for path in paths if not path.endswith("/") and not _is_skipped(path)}))
    return await to_thread.run_sync(walk, root)


def walk(root: Path) -> FileListing:
    """List the files below a folder within limits, without following links or entering other repositories."""
    files: list[str] = []
    notes: list[str] = []
    folders = [""]
    deadline = time.monotonic() + MAX_WALK_SECONDS
    entry_count = 0
    while folders:
        folder = folders.pop()
        if entry_count > MAX_ENTRIES or time.monotonic() > deadline:
            notes.append(f"the search was cut off after {entry_count:,} entries: what lies deeper was not looked at")
            break
        try:
            with os.scandir(root / folder) as scan:
                entries = list(scan)
        except OSError as error:
            notes.append(f"{printable(folder or '.')} cannot be listed: {error.strerror}")
            continue
        entry_count += len(entries)
        if folder and any(entry.name == ".git" for entry in entries):
            notes.append(f"{printable(folder)}/ is a repository of its own and was left out")
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if not _is_skipped_name(entry.name):
                    folders.append(path)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                files.append(path)
    return FileListing(sorted(files), tuple(notes))


def _read_all(root: Path, listing: FileListing) -> RuleBook:
    """Read the rules among the files, the deepest first."""
    rule_files = [path for path in listing.files if posixpath.basename(path) == FILE_NAME]
    notes = list(listing.notes)
    vendored = [path for path in rule_files if _is_skipped(path)]
    if vendored:
        names = ", ".join(map(printable, vendored[:5])) + (", …" if len(vendored) > 5 else "")
        notes.append(f"rules in folders of other people's code were left out: {names}")
    rules: list[Rule] = []
    broken: list[BrokenFile] = []
    for path in sorted(set(rule_files) - set(vendored), key=lambda path: (-path.count("/"), path)):
        if not _exists(root / path):
            continue  # git lists files that were deleted and not yet committed.
        contents = _too_many(rules, path) or read_rules(root, path)
        if isinstance(contents, BrokenFile):
            broken.append(contents)
        else:
            rules += contents
    return RuleBook(tuple(rules), tuple(broken), tuple(notes))


def _too_many(rules: Sequence[Rule], path: str) -> BrokenFile | None:
    """Refuse a further file once the rules that were read could cost too much."""
    globs = sum(rule.globs for rule in rules)
    characters = sum(len(rule.instructions) for rule in rules)
    if len(rules) < MAX_RULES and globs < MAX_RULE_GLOBS and characters < MAX_RULE_CHARACTERS:
        return None
    message = f"it was not read: a project has at most {MAX_RULES:,} rules with {MAX_RULE_GLOBS:,} globs in all"
    return BrokenFile(path, f"{printable(path)}: {message}")


def _exists(path: Path) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_skipped(path: str) -> bool:
    return any(map(_is_skipped_name, path.split("/")[:-1]))


def _is_skipped_name(name: str) -> bool:
    return name in SKIPPED or name.endswith(".egg-info")
