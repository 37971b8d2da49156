"""Who sits at the terminal, as far as the system tells."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path

from deepwork.ports.inbox import Answerer
from deepwork.text import one_line

MAX_ANCESTORS = 20


def at_terminal() -> Answerer:
    """Return who uses this terminal, and under which programs this runs; without a terminal no person is there."""
    return Answerer(user=_user(), terminal=_own_terminal(), process=tuple(_ancestors(os.getpid())))


def _user() -> str | None:
    """Return the user's name; None in a container that runs as a user without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _own_terminal() -> str | None:
    """Return the terminal to which stdin and stderr lead, if it belongs to the user; root may use any."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    terminal = sys.stdin.fileno()
    is_own = os.getuid() in (0, os.fstat(terminal).st_uid)
    return os.ttyname(terminal) if is_own else None


def _ancestors(pid: int) -> list[str]:
    """Name this process and those above it, as far as the system tells."""
    names: list[str] = []
    while pid > 1 and len(names) < MAX_ANCESTORS:
        try:
            # The name stands in parentheses and may hold any character, `)` included.
            name, _, rest = Path(f"/proc/{pid}/stat").read_text(errors="replace").partition("(")[2].rpartition(")")
        except OSError:
            break
        names.append(f"{one_line(name, 60)} ({pid})")
        pid = int(rest.split()[1])
    return names or [f"deepwork ({pid})"]
