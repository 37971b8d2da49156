"""Which folder a project's database belongs to: one for all working trees of a repository, found without git."""

from __future__ import annotations

import os
import re
from pathlib import Path

from deepwork.api import Folder
from deepwork.errors import PathRefused

MAX_CONFIG = 1024 * 1024
_BARE = re.compile(r"^\s*bare\s*=\s*(true|yes|on|1)\s*$", re.MULTILINE | re.IGNORECASE)
_WORK_TREE = re.compile(r'^\s*worktree\s*=\s*"?([^"\n]+?)"?\s*$', re.MULTILINE | re.IGNORECASE)


def owner_of(root: Path, *, scope: str) -> Path:
    """Return the folder whose real path names the database of a project.

    It is the main working tree of the project's repository; the git folder if that is bare, so has none; else the
    project itself. A folder that becomes a repository later is named by the same path.
    """
    common = _common_folder(root) if scope == "repository" else None
    if common is None:
        return _real(root)
    return _main_tree(common) or common


def old_data_root(root: Path, *, scope: str) -> Path:
    """Return the folder in whose `.deepwork/data` releases before 1.0.0 kept the database."""
    common = _common_folder(root) if scope == "repository" else None
    return common.parent if common and common.name == ".git" and not _is_bare(common) else root


def _common_folder(root: Path) -> Path | None:
    """Find the git folder that a linked working tree shares with the others of its repository.

    The `.git` of a linked working tree names a folder of the repository. It is believed only if that folder names this
    working tree too: else a repository could open the database of any other project.
    """
    git_dir = _named_git_dir(root)
    if git_dir is None or (common := _first_line(git_dir / "commondir")) is None:
        return None
    common_dir = _real(git_dir / common)
    back = _first_line(git_dir / "gitdir")
    points_back = back is not None and _real(git_dir / back) == _real(root / ".git")
    return common_dir if points_back and git_dir.parent == common_dir / "worktrees" else None


def _main_tree(common: Path) -> Path | None:
    """Return the main working tree of a repository; None if it is bare."""
    if _is_bare(common):
        return None
    if common.name == ".git":
        return common.parent
    match = _WORK_TREE.search(_config(common))  # a submodule's git folder names its working tree
    tree = _real(common / match[1]) if match else None
    return tree if tree and _named_git_dir(tree) == common else None


def _named_git_dir(root: Path) -> Path | None:
    line = _first_line(root / ".git")
    return _real(root / line.removeprefix("gitdir:").strip()) if line and line.startswith("gitdir:") else None


def _first_line(file: Path) -> str | None:
    return _read(file).partition("\n")[0].strip() or None


def _read(file: Path, limit: int = 4096) -> str:
    """Read a regular file, if it is small."""
    try:
        with Folder.open(file.parent, inside=file.parent) as folder:
            return (folder.read(file.name, limit=limit) or b"").decode()
    except (OSError, ValueError, PathRefused):
        return ""


def _is_bare(common: Path) -> bool:
    return _BARE.search(_config(common)) is not None


def _config(common: Path) -> str:
    return _read(common / "config", MAX_CONFIG)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
