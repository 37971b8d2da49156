"""How long ago something was."""

from __future__ import annotations

from datetime import datetime

# An agent that has made no call for so many seconds may have gone.
QUIET_SECONDS = 300


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


def no_agent(last_call_at: str, now: datetime) -> str:
    """Return `no agent since 14 min` for what nobody has worked on for five minutes, or else an empty text."""
    try:
        seconds = (now - datetime.fromisoformat(last_call_at).astimezone()).total_seconds()
    except ValueError:
        return ""
    return f"no agent since {age(last_call_at, now)}" if seconds >= QUIET_SECONDS else ""
