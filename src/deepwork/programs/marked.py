"""Processes that have a mark in their environment, of any parent."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress


def end_marked(name: str, value: str) -> list[int]:
    """Kill every process of this user in whose environment a variable has this value, and return their ids.

    A program that was started with such a mark is found by it, and so is all that it has started, even if its parent
    has died meanwhile. This process and those above it are left alone. It needs `/proc`; elsewhere nothing is found.
    """
    mark = f"{name}={value}".encode()
    spared = set(_above(os.getpid()))
    killed: list[int] = []
    # A process that is just being started has its mark a moment later.
    while found := [pid for pid in _processes() if pid not in spared and mark in _variables(pid)]:
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        new = set(found) - set(killed)
        if not new:
            break
        killed += new
    return killed


def _processes() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return []


def _variables(pid: int) -> list[bytes]:
    """Return the environment that a process was started with; nothing if it has ended, or is another user's."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return file.read().split(b"\0")
    return []


def _above(pid: int) -> Iterator[int]:
    """Return a process and those above it."""
    while pid:
        yield pid
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
