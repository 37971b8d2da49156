"""What git would read of a repository, looked at before git is started.

A FIFO among it would make git wait, and a part that leads elsewhere would bring the files of another repository in, or
let git write there. git carries neither, but an archive does.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from deepwork.errors import GitError

# What git reads of its folder, as this server uses it. Hooks are switched off; others may lie where they like.
_READ = frozenset(
    {"HEAD", "commondir", "config", "config.worktree", "gitdir", "index", "info", "logs", "objects", "packed-refs"}
    | {"refs", "reftable", "shallow", "worktrees"}
)
# Below these every folder is read; of the objects only the first level, because the names of the files cannot be
# guessed.
_READ_WHOLE = ("info", "logs", "refs", "reftable", "worktrees")
_IN_FOLDERS = (".gitignore", ".gitattributes", ".gitmodules")
_MAX_BYTES = 1024 * 1024
_MAX_ALTERNATES = 5
_MAX_INCLUDES = 10
_INCLUDE = re.compile(r'(?:^|\])[ \t]*path[ \t]*=[ \t]*"?([^"\n]+?)"?[ \t]*$', re.MULTILINE | re.IGNORECASE)


class GitFolders(NamedTuple):
    """The folders of a repository.

    Attributes:
        top: The working tree; its `.git` is the folder, or names it.
        own: What git keeps of this working tree.
        common: What it keeps for all working trees of the repository; the same, but for linked ones.
    """

    top: Path
    own: Path
    common: Path


def find_folders(root: Path) -> list[GitFolders]:
    """List the repositories around a folder, the innermost first; git passes over damaged ones.

    Raises:
        GitError: A `.git` is neither a folder nor a file, or a file beside it that says where the rest is.
    """
    return [_folders(top) for top in (root, *root.parents) if os.path.lexists(top / ".git")]


def check_readable(folders: GitFolders, root: Path) -> None:
    """Check that git would read no special file at every call.

    Raises:
        GitError: There is one; the error names it.
    """
    for folder in dict.fromkeys((folders.own, folders.common)):
        for path in _parts(folder):
            _check(path)
        for name in ("config", "config.worktree"):
            _check_includes(folder / name, _MAX_INCLUDES)
    for folder in (root, *root.parents):
        if folder.is_relative_to(folders.top):
            for name in _IN_FOLDERS:
                _check(folder / name)


def check_configured(paths: Iterator[str], root: Path, top: Path, environment: Mapping[str, str]) -> None:
    """Check that the configuration names no special file, such as by `core.excludesFile`.

    Raises:
        GitError: There is one; the error names it.
    """
    home = environment.get("HOME", "")
    for path in paths:
        shown = home + path[1:] if path.startswith("~/") else path
        for folder in {root, top}:
            _check(folder / shown)


def check_below(top: Path) -> None:
    """Raise for a special file that git would read in any folder of a working tree.

    Raises:
        GitError: There is one; the error names it.
    """
    for folder, folders, names in os.walk(top):
        for name in _IN_FOLDERS:
            if name in names:
                _check(Path(folder) / name)
        folders[:] = [name for name in folders if name != ".git"]


def parts_elsewhere(folders: GitFolders, worktree: str | None) -> list[str]:
    """List what of a repository leads out of it, as people read it: each with the folder to which it leads.

    A linked working tree and its repository that name each other belong together; so do a submodule and its own.

    Args:
        folders: The folders of the repository.
        worktree: `core.worktree`, if it is set.
    """
    top, own, common = folders
    elsewhere = []
    homes = [top]
    if not own.is_relative_to(top):
        if _names_back(folders, worktree):
            homes += [own, common]
        else:
            elsewhere.append(f"the folder of git: {own}")
    if common != own and not any(common.is_relative_to(home) for home in homes):
        elsewhere.append(f"the folder that git shares: {common}")
    for folder in dict.fromkeys((own, common)):
        for path in _parts(folder):
            if path.is_symlink() and not _is_inside(path, homes):
                elsewhere += [f"the link {path.relative_to(folder)}: {os.path.realpath(path)}"]
    elsewhere += (f"objects: {folder}" for folder in _alternates(common / "objects", homes, _MAX_ALTERNATES))
    return sorted(set(elsewhere))


def _folders(top: Path) -> GitFolders:
    entry = top / ".git"
    _check(entry)
    own = entry
    if entry.is_file():
        line = _first_line(entry)
        own = top / line.removeprefix("gitdir:").strip() if line.startswith("gitdir:") else entry
    _check(own / "commondir")
    shared = _first_line(own / "commondir")
    return GitFolders(_real(top), _real(own), _real(own / shared))


def _names_back(folders: GitFolders, worktree: str | None) -> bool:
    """True if git's own record of a working tree names that working tree: it cannot be forged from there."""
    top, own, common = folders
    if own.parent == common / "worktrees":
        line = _first_line(own / "gitdir")
        return bool(line) and _real(own / line) == _real(top / ".git")
    return own == common and worktree is not None and _real(own / worktree) == top


def _parts(folder: Path) -> Iterator[Path]:
    """Yield the files, links and folders of git's own folder that git reads by themselves."""
    for entry in _scan(folder):
        if entry.name not in _READ:
            continue
        yield Path(entry.path)
        if entry.name == "objects":
            yield from (Path(below.path) for below in _scan(entry.path))
            yield from (Path(below.path) for below in _scan(os.path.join(entry.path, "info")))
        elif entry.name in _READ_WHOLE:
            yield from _below(entry.path)


def _below(folder: str) -> Iterator[Path]:
    for entry in _scan(folder):
        # A name of a plain file needs no look of its own: there may be thousands.
        if not entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path)


def _scan(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []


def _alternates(objects: Path, homes: list[Path], depth: int) -> Iterator[Path]:
    """Yield the folders outside that git would read objects from."""
    text = _text(objects / "info" / "alternates")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            folder = _real(objects / line.strip('"'))
            if not any(folder.is_relative_to(home) for home in homes):
                yield folder
            elif depth:
                yield from _alternates(folder, homes, depth - 1)


def _check_includes(file: Path, depth: int) -> None:
    """Look at the files that a configuration includes, before git reads it."""
    for match in _INCLUDE.finditer(_text(file).replace("\\\n", "")):
        path = file.parent / os.path.expanduser(match[1])
        _check(path)
        if depth:
            _check_includes(path, depth - 1)


def _check(path: Path) -> None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return
    is_empty = stat.S_ISCHR(status.st_mode) and status.st_rdev == os.stat(os.devnull).st_rdev
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or is_empty):
        raise GitError(
            f"git would wait for {str(path)!r}, which is not a regular file but a pipe, a socket or a device",
            hint="Remove it.",
        )


def _is_inside(path: Path, homes: list[Path]) -> bool:
    target = _real(path)
    return any(target.is_relative_to(home) for home in homes)


def _first_line(file: Path) -> str:
    return _text(file, 4096).partition("\n")[0].strip()


def _text(file: Path, limit: int = _MAX_BYTES) -> str:
    """Read a regular file up to a limit; nothing without one."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
            is_regular = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            return opened.read(limit).decode(errors="surrogateescape") if is_regular else ""
    except (OSError, ValueError):
        return ""


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
