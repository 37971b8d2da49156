"""Locks between processes."""

from __future__ import annotations

import sys
import time

from deepwork.errors import StorageError

if sys.platform != "win32":
    import fcntl

LOCK_SECONDS = 4.0


class LockHeld(StorageError):
    """Another process holds a lock, and has held it all the time that was waited for it."""


def wait_for_lock(descriptor: int, subject: str, seconds: float) -> None:
    """Wait until this process holds the lock of an open file; see `Folder.locked`."""
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LockHeld(
                    f"another process has held the lock of {subject} for {seconds:g} s; nothing was changed",
                    hint="Call again; if it stays so, look for a suspended deepwork process.",
                ) from None
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
