"""What the user asks of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class OnLimit(StrEnum):
    """What happens when an agent may do nothing for a while."""

    WAIT = "wait"
    SWITCH = "switch"
    RELEASE = "release"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a run goes.

    Attributes:
        agents: Names of agents; the first one begins.
        allow: What they may do besides reading and editing files of the project.
        max_seconds: How long the run may take; None without a limit.
        budget_usd: What the session may cost; None without a limit.
        on_limit: What happens at a limit.
        waits: Whether the run waits for limits and people; it ends otherwise.
    """

    agents: tuple[str, ...]
    allow: frozenset[str] = frozenset()
    max_seconds: float | None = None
    budget_usd: float | None = None
    on_limit: OnLimit = OnLimit.WAIT
    waits: bool = True


def seconds_of(text: str) -> float | None:
    """Return the seconds of `90s`, `30m`, `8h` or `2d`; None for anything else, and for no time at all."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0
    return seconds or None
