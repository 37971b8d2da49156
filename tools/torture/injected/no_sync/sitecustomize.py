"""A planted bug: changes are acknowledged before they are synced, which then happens whenever the kernel likes."""

from __future__ import annotations

import os


def _later(_descriptor: int) -> None:
    pass


os.fsync = os.fdatasync = _later
