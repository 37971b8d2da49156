"""What git itself keeps of a linked worktree, in its own folder `worktrees/<id>`, and the mark of this plugin there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from deepwork.api import Folder, Git

# In the folder that git keeps of a worktree: the id of the workspace for which this plugin has made it.
MARK = "deepwork-workspace"
_MAX_BYTES = 4096


class Entry(NamedTuple):
    """A worktree that git knows.

    Attributes:
        place: Where it is; its folder may be absent.
        git_folder: The folder that git keeps of it.
        workspace_id: The workspace for which this plugin has made it; None if this plugin has not made it.
        lock: Why it is locked, perhaps an empty text; None if it is not.
    """

    place: Path
    git_folder: Path
    workspace_id: str | None
    lock: str | None

    @property
    def is_there(self) -> bool:
        """Whether the folder is there, and names what git keeps of it."""
        return named_by(self.place / ".git") == self.git_folder


def exists(path: Path) -> bool:
    """True if there is something at a path, a broken link too."""
    return os.path.lexists(path)


async def find_entry(git: Git, place: Path) -> Entry | None:
    """Return what git keeps of the worktree at a place; None if the repository has no linked worktree there.

    Raises:
        GitError: git gave no answer.
    """
    return next((entry for entry in await entries(git) if entry.place == place), None)


async def entries(git: Git) -> list[Entry]:
    """List the linked worktrees of a repository, without those whose place is unknown to git.

    Raises:
        GitError: git gave no answer.
    """
    return [*_entries(await git.common_folder() / "worktrees")]


def write_mark(entry: Entry, workspace_id: str) -> None:
    """Write down for which workspace a worktree was made.

    Raises:
        OSError: It cannot be written.
    """
    with Folder.open(entry.git_folder, inside=entry.git_folder.parent) as folder:
        folder.replace(MARK, f"{workspace_id}\n".encode())


def move(entry: Entry, place: Path) -> None:
    """Rename the folder of a worktree, and tell git. `git worktree move` refuses worktrees with submodules.

    Raises:
        OSError: It is where it was.
    """
    os.rename(entry.place, place)
    try:
        with Folder.open(entry.git_folder, inside=entry.git_folder.parent) as folder:
            folder.replace("gitdir", os.fsencode(place / ".git") + b"\n")
        # Since 2.48 git can write a relative path into a worktree, which leads nowhere after the move.
        write_pointer(place / ".git", entry.git_folder)
    except BaseException:
        os.rename(place, entry.place)
        with suppress(OSError), Folder.open(entry.git_folder, inside=entry.git_folder.parent) as folder:
            folder.replace("gitdir", os.fsencode(entry.place / ".git") + b"\n")
        raise


def write_pointer(pointer: Path, git_folder: Path) -> None:
    """Write the `.git` of a worktree or a submodule, which names the folder that git keeps of it.

    Raises:
        OSError: It cannot be written.
    """
    with Folder.open(pointer.parent, inside=pointer.parent) as folder:
        folder.replace(pointer.name, b"gitdir: " + os.fsencode(git_folder) + b"\n")


def _entries(folder: Path) -> Iterator[Entry]:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        git_folder = folder / name
        line = _line(git_folder / "gitdir")
        if line:
            pointer = Path(os.path.abspath(git_folder / line))
            place = Path(os.path.realpath(pointer.parent))
            yield Entry(place, git_folder, _line(git_folder / MARK), _line(git_folder / "locked"))


def named_by(pointer: Path) -> Path | None:
    """Return the folder that the `.git` of a worktree or a submodule names; None if it is a folder itself."""
    line = _line(pointer)
    if not line or not line.startswith("gitdir: "):
        return None
    return Path(os.path.realpath(pointer.parent / line.removeprefix("gitdir: ")))


def _line(file: Path) -> str | None:
    """Return the first line of a small regular file; None without one."""
    try:
        with Folder.open(file.parent, inside=file.parent) as folder:
            if not stat.S_ISREG(folder.status(file.name).st_mode):
                return None
            return os.fsdecode(folder.read(file.name, limit=_MAX_BYTES) or b"").partition("\n")[0]
    except (OSError, ValueError):
        return None
