"""Runs one program on Linux, and ends everything that it has started. A script of its own: it imports nothing of ours.

    python -I -S supervisor.py STATUS PARENT PROGRAM [ARGUMENT]...

It writes to the descriptor STATUS a line `started PID` or `errno NUMBER`, and `ended STATUS` once the program has
ended. On SIGTERM, which the kernel sends when the process PARENT dies, it kills every process below it. It is a child
subreaper (prctl), so a process whose parent has died stays below it, also one with a session of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SWEEP_SECONDS = 5.0
PAUSE_SECONDS = 0.002


def main(status: int, parent: int, command: list[str]) -> None:
    """Run the program, and wait to be told that everything has to end."""
    signals = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    os.set_inheritable(status, False)  # noqa: FBT003 - it has no name
    if os.getppid() != parent:  # it has died before we asked to be told
        return
    # Python ignores the first two, and what a shell starts in its background the last; a program would inherit that.
    defaults = [signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT]
    try:
        pid = os.posix_spawn(command[0], command, environment(), setpgroup=0, setsigmask=[], setsigdef=defaults)
    except OSError as error:
        os.write(status, b"errno %d\n" % (error.errno or 0))
        return
    os.write(status, b"started %d\n" % pid)
    let_go_of_pipes()
    while signal.sigwait(signals) != signal.SIGTERM:
        with suppress(ChildProcessError):
            for ended, how in reaped():
                if ended == pid:
                    os.write(status, b"ended %d\n" % how)
    sweep()


def environment() -> dict[bytes, bytes]:
    """Return the variables that we were started with; Python may have added one for its own locale."""
    with open("/proc/self/environ", "rb") as file:
        pairs = (item.partition(b"=") for item in file.read().split(b"\0") if item)
        return {name: value for name, _, value in pairs}


def let_go_of_pipes() -> None:
    """Close what the program reads and writes: its end would not be seen while we hold it open."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def reaped() -> list[tuple[int, int]]:
    """Return the children that have ended, adopted ones included.

    Raises:
        ChildProcessError: There are no children any more.
    """
    ended = [os.waitpid(-1, os.WNOHANG)]
    with suppress(ChildProcessError):
        while ended[-1][0]:
            ended.append(os.waitpid(-1, os.WNOHANG))
    return ended


def sweep() -> None:
    """Kill everything below us until nothing is left, or only what we may not kill, such as a program of root."""
    end = time.monotonic() + SWEEP_SECONDS
    while time.monotonic() < end:
        try:
            reaped()
        except ChildProcessError:
            return
        for pid in below(os.getpid()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)


def below(root: int) -> list[int]:
    """List the processes below one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of the program stands in parentheses, and may hold any character.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    pids, pending = [], [root]
    while pending:
        below_this = children.pop(pending.pop(), [])
        pids += below_this
        pending += below_this
    return pids


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
