"""Locks between processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deepwork.errors import StorageError

if sys.platform != "win32":
    import fcntl

LOCK_SECONDS = 4.0


@contextmanager
def locked(folder: int, name: str, *, subject: str, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold an advisory lock on a file of an open folder; the kernel frees it when the process dies.

    Not a library's lock: those take paths, and a path can be swapped for a link between check and use.

    Args:
        folder: The open folder.
        name: The lock file in it.
        subject: What the lock protects, for the error that people read.
        seconds: How long to wait.

    Raises:
        StorageError: Somebody else held the lock all the time.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    try:
        _wait_for_lock(descriptor, subject, seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, subject: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StorageError(
                    f"another process has held the lock of {subject} for {seconds:g} s; nothing was changed",
                    hint="Call again; if it stays so, look for a suspended deepwork process.",
                ) from None
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
