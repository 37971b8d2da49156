"""The file `sessions.changes`: which sessions were saved, so that a server need not look at the file of each.

A save adds a line to it: when the folder was changed last before it, when after it, and the ids of what it saved. A
reader who has seen all until a line goes on from there. Where the times of the lines follow each other and lead to the
time that the folder has now, nothing else has changed the folder: no person, no other program, and no save that was cut
off. Otherwise the reader looks at all files, so the file may be removed, damaged or left behind at any time, and is
never synced.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from deepwork.api import Folder

CHANGES = "sessions.changes"
# A larger file is begun anew.
MAX_CHANGES = 256 * 1024

_HEAD = 33  # bytes: what tells a file from those before it, and the end of its line
_SECOND_NS = 1_000_000_000


class Mark(NamedTuple):
    """How far a reader has read.

    Attributes:
        head: That of the file; empty without one.
        size: Of what was read.
        folder_time: When the folder was changed last.
    """

    head: bytes
    size: int
    folder_time: int


class Changes(NamedTuple):
    """What has happened since a mark.

    Attributes:
        mark: How far was read now.
        ids: The sessions that were saved; None if that is not known.
        is_all: Whether nothing else has happened in the folder.
    """

    mark: Mark
    ids: set[str] | None
    is_all: bool


class Note:
    """What one batch of saves changes in the folder.

    Args:
        folder: The folder, in which nothing was changed yet.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._before = self._paused = changed_at(folder)
        self._is_alone = True

    def pause(self) -> None:
        """Change nothing for a while, in which others may."""
        self._paused = changed_at(self._folder)

    def go_on(self) -> None:
        """Go on with changes."""
        self._is_alone = changed_at(self._folder) == self._paused

    def write(self, session_ids: Iterable[str]) -> None:
        """Write down what was saved. A note that cannot be written is missed by its readers, who look at all files."""
        before = self._before if self._is_alone else 0
        line = f"{before} {changed_at(self._folder)} {' '.join(session_ids)}\n"
        with suppress(OSError):
            if not self._is_added(line.encode()):
                self._folder.replace(CHANGES, secrets.token_hex().encode()[: _HEAD - 1] + b"\n", synced=False)

    def _is_added(self, line: bytes) -> bool:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(CHANGES, flags, dir_fd=self._folder.descriptor)
        except FileNotFoundError:
            return False
        try:
            os.write(descriptor, line)
            return os.lseek(descriptor, 0, os.SEEK_CUR) <= MAX_CHANGES
        finally:
            os.close(descriptor)


def changed_at(folder: Folder) -> int:
    """Return when something in a folder was made, renamed or removed last, in nanoseconds."""
    return os.fstat(folder.descriptor).st_mtime_ns


def changes_since(folder: Folder, mark: Mark | None) -> Changes:
    """Read what has been saved since a mark."""
    folder_time = changed_at(folder)
    head, lines, size = _read(folder, mark)
    now = Mark(head, size, folder_time)
    if mark is None or not head or head != mark.head:
        return Changes(now, None, is_all=False)
    ids: set[str] = set()
    last, is_all = str(mark.folder_time), True
    for line in lines:
        before, _, text = line.decode("ascii", "replace").partition(" ")
        after, _, saved = text.partition(" ")
        ids.update(saved.split(" "))
        is_all = is_all and before == last
        last = after
    # Where the clock of the file system counts in seconds, two changes are likely to have the same time.
    return Changes(now, ids, is_all and last == str(folder_time) and folder_time % _SECOND_NS != 0)


def _read(folder: Folder, mark: Mark | None) -> tuple[bytes, list[bytes], int]:
    """Read the head, the whole lines after a mark, and how far they go."""
    try:
        with folder.open_file(CHANGES) as file:
            descriptor = file.fileno()
            head = os.pread(descriptor, _HEAD, 0)
            if mark is None or head != mark.head:
                return head, [], os.fstat(descriptor).st_size
            content = os.pread(descriptor, 2 * MAX_CHANGES, mark.size)
    except OSError:
        return b"", [], 0
    *lines, rest = content.split(b"\n")
    return head, lines, mark.size + len(content) - len(rest)
