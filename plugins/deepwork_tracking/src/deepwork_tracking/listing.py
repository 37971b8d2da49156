"""The files of a folder without git, except those ignored by its `.gitignore` files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from deepwork.api import read_regular
from deepwork.errors import PathRefused

# Folders that tools fill. git needs no rule for `.git`; the others are usually ignored where there is git.
SKIPPED = frozenset({".git", ".tox", ".venv", "__pycache__", "node_modules", "venv"})
MAX_IGNORE_FILE = 256 * 1024

# What the server keeps in a project. Other files of `.deepwork` are the user's.
_OWN = re.compile(r"(^|/)\.deepwork/(data|tmp|worktrees)(/|$)")


def is_own(path: str) -> bool:
    """True if the server itself keeps a file."""
    return bool(_OWN.search(path))


def files_below(top: Path) -> Iterator[str]:
    """Return the files and links that are not ignored, as paths relative to the folder."""
    yield from _walk(top, "", ())


def readable(path: str) -> str:
    r"""Write a path so that it can be stored and sent: a byte that is not UTF-8 becomes `\xe9`."""
    return os.fsencode(path).decode(errors="backslashreplace")


# The rules of one `.gitignore`, and the folder where it lies, which ends with `/` if it is not the top.
_Rules = tuple[str, GitIgnoreSpec]


def _walk(top: Path, folder: str, outer: Sequence[_Rules]) -> Iterator[str]:
    own = _rules(top, f"{folder}.gitignore")
    rules = (*outer, (folder, own)) if own else outer
    try:
        entries = sorted(os.scandir(os.path.join(top, folder)), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = folder + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if _is_ignored(f"{path}/" if is_folder else path, rules) or is_own(path):
            continue
        if not is_folder:
            if entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield path
        elif entry.name not in SKIPPED:
            yield from _walk(top, f"{path}/", rules)


def _rules(top: Path, path: str) -> GitIgnoreSpec | None:
    try:
        text = read_regular(path, [top], limit=MAX_IGNORE_FILE).decode(errors="replace")
        return GitIgnoreSpec.from_lines(text.splitlines())
    except (OSError, PathRefused, ValueError):
        return None


def _is_ignored(path: str, rules: Sequence[_Rules]) -> bool:
    """Apply the innermost file that has a rule for the path, as git does."""
    for folder, spec in reversed(rules):
        include = spec.check_file(path.removeprefix(folder)).include
        if include is not None:
            return include
    return False
