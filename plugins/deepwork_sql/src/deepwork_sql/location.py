"""Where the SQLite file of a project is: one for all working trees of a repository, found without git."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from deepwork.api import Folder, PathRefused

DATA = ".deepwork/data"
FILE = "deepwork.db"

_LIMIT = 4096
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


def prepare_file(root: Path) -> Path:
    """Make the folder and the file of the database, for their owner only and ignored by git.

    Raises:
        PathRefused: One of them is a link, or is not what it should be.
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
        _make_file(folder, data / FILE)
    return data / FILE


def _make_file(folder: Folder, path: Path) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(FileExistsError):
        os.close(os.open(path.name, flags, 0o600, dir_fd=folder.descriptor))
        folder.sync()
    if not stat.S_ISREG(folder.status(path.name).st_mode):
        raise PathRefused(f"{path} is a link, or no regular file; it is not used as a database", hint="Remove it.")


def _linked_git_dir(root: Path) -> Path | None:
    line = _first_line(root / ".git")
    return _real(root / line.removeprefix("gitdir:").strip()) if line and line.startswith("gitdir:") else None


def _first_line(file: Path) -> str | None:
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read(_LIMIT).partition("\n")[0].strip() or None
    except (OSError, ValueError):
        return None


def _is_bare(common_dir: Path) -> bool:
    try:
        return _BARE.search((common_dir / "config").read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
