"""Who sits at the terminal, as far as the system tells."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path

from deepwork.ports.inbox import Answerer
from deepwork.text.shorten import one_line

MAX_ANCESTORS = 20


def at_terminal() -> Answerer:
    """Say at which terminal and under which programs this runs; without a terminal nobody can be there."""
    is_there = sys.stdin.isatty() and sys.stderr.isatty()
    return Answerer(
        user=getpass.getuser(),
        terminal=os.ttyname(sys.stdin.fileno()) if is_there else None,
        process=tuple(_ancestors(os.getpid())),
    )


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
