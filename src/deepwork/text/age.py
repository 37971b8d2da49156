"""How long ago something was."""

from __future__ import annotations

from datetime import datetime


def age(moment: str, now: datetime) -> str:
    """Say how long ago something was; files of other releases may hold any text."""
    try:
        seconds = max(0, int((now - datetime.fromisoformat(moment).astimezone()).total_seconds()))
    except ValueError:
        return "some time"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
