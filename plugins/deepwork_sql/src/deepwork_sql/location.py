"""Where the SQLite file of a project is: one for all working trees of a repository, found without git."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from deepwork.api import Folder, PathRefused
from deepwork_sql.ownership import KnownFiles, check_ownership, files_beside, new_content, new_mark

DATA = ".deepwork/data"
FILE = "deepwork.db"

MAX_CONFIG = 1024 * 1024
_LOCK = ".lock"
_BARE = re.compile(r"^\s*bare\s*=\s*(true|yes|on|1)\s*$", re.MULTILINE | re.IGNORECASE)


def data_root(root: Path, *, scope: str) -> Path:
    """Say which folder keeps the data of a project: the main working tree of its repository, or itself."""
    main = main_working_tree(root) if scope == "repository" else None
    return main or root


def main_working_tree(root: Path) -> Path | None:
    """Find the main working tree to which a linked one belongs.

    The `.git` of a linked working tree names a folder of the main repository. It is believed only if that folder names
    this working tree too: else anybody who can write here could choose where data are kept.
    """
    git_dir = _linked_git_dir(root)
    if git_dir is None or (common := _first_line(git_dir / "commondir")) is None:
        return None
    common_dir = _real(git_dir / common)
    back = _first_line(git_dir / "gitdir")
    points_back = back is not None and _real(git_dir / back) == _real(root / ".git")
    if not points_back or git_dir.parent != common_dir / "worktrees" or common_dir.name != ".git":
        return None
    return None if _is_bare(common_dir) else common_dir.parent


def prepare_file(root: Path, environment: Mapping[str, str]) -> Path:
    """Make the folder and the file of the database, for their owner only and ignored by git.

    Raises:
        PathRefused: One of them is a link, or is not what it should be.
        DatabaseError: The file, or one beside it, is not of this user's making.
        OSError: They cannot be made.
    """
    data = root / DATA
    for place in (data.parent, data):
        if place.is_symlink():
            raise PathRefused(f"{place} is a link; the database is kept in a folder of its own", hint="Remove it.")
    with Folder.open(data, inside=root, create=True) as folder:
        if stat.S_IMODE(os.fstat(folder.descriptor).st_mode) != 0o700:
            os.fchmod(folder.descriptor, 0o700)
        try:
            folder.status(".gitignore")
        except FileNotFoundError:
            folder.replace(".gitignore", b"*\n")
        with folder.locked(_LOCK, subject="the database"):
            _make_file(folder, data / FILE, root, environment)
        check_ownership(folder, data / FILE, root, environment)
    return data / FILE


def _make_file(folder: Folder, path: Path, root: Path, environment: Mapping[str, str]) -> None:
    """Make the file of this user, unless there is one."""
    try:
        if not stat.S_ISREG(folder.status(path.name).st_mode):
            raise PathRefused(f"{path} is a link, or no regular file; it is not used as a database", hint="Remove it.")
    except FileNotFoundError:
        if strange := [*files_beside(folder, path.name)]:
            raise PathRefused(
                f"{path.parent} has {' and '.join(strange)} without the database that they belong to",
                hint="Remove them, or put the database in place.",
            ) from None
        mark = new_mark()
        KnownFiles(environment, root).add(mark)
        folder.replace(path.name, new_content(mark))


def _linked_git_dir(root: Path) -> Path | None:
    line = _first_line(root / ".git")
    return _real(root / line.removeprefix("gitdir:").strip()) if line and line.startswith("gitdir:") else None


def _first_line(file: Path) -> str | None:
    return _read(file).partition("\n")[0].strip() or None


def _read(file: Path, limit: int = 4096) -> str:
    """Read a small file; nothing of one that is no regular file, or is larger."""
    try:
        with Folder.open(file.parent, inside=file.parent) as folder:
            return (folder.read(file.name, limit=limit) or b"").decode()
    except (OSError, ValueError, PathRefused):
        return ""


def _is_bare(common_dir: Path) -> bool:
    return _BARE.search(_read(common_dir / "config", MAX_CONFIG)) is not None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
