"""Private folders for copies of work, among the temporary files; those of killed processes are removed later."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "deepwork-private-"
# What `mkdtemp` puts after a prefix.
_NAME = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only its owner can enter, and remove it with everything in it at the end.

    If this process is killed before, `remove_left_folders` removes it.

    Raises:
        OSError: It cannot be made.
    """
    folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_left_folders() -> None:
    """Remove the private folders that killed processes have left, known by name, owner and mode; others stay.

    A process that runs holds a lock on its folder, which ends with it, also in a container with process ids of its own.
    """
    temporary = tempfile.gettempdir()
    with suppress(OSError):
        for name in os.listdir(temporary):
            if _NAME.fullmatch(name):
                _remove_if_left(os.path.join(temporary, name))


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
        # Until it is locked, another process may take it for a leftover, and remove it.
        with suppress(FileNotFoundError):
            lock = os.open(folder, _OPEN)
            with suppress(OSError):  # without locks no other process can remove it either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return folder, lock
            os.close(lock)


def _remove_if_left(path: str) -> None:
    with suppress(OSError):
        folder = os.open(path, _OPEN)
        try:
            status = os.fstat(folder)
            if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == stat.S_IRWXU:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
        finally:
            os.close(folder)
