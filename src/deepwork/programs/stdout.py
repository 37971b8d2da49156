"""Keeps stdout for the result of a command, or for a protocol."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Send to stderr what is printed meanwhile, also by programs: stdout is for the result of a command."""
    sys.stdout.flush()
    try:
        real_stdout = os.dup(1)
    except OSError:  # the parent process has closed it
        with redirect_stdout(sys.stderr):
            yield
        return
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stderr.flush()
        os.dup2(real_stdout, 1)
        os.close(real_stdout)
