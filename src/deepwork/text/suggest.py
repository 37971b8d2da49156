"""Suggestions for unknown names: the valid name that is most similar."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MAX_NAME = 100
MAX_LISTED = 20
# From this likeness on (0 to 1) a name counts as a slip of the other; below it a suggestion misleads.
NEAR = 0.75


def near(name: str, valid: Sequence[str]) -> str | None:
    """Give the valid name that was probably meant; None if none is near."""
    close = difflib.get_close_matches(name, valid, n=1, cutoff=NEAR) if len(name) <= MAX_NAME else []
    return close[0] if close else None


def nearest(name: str, valid: Sequence[str]) -> str:
    """Say which valid name was probably meant, or list them all; for the end of a message."""
    close = near(name, valid)
    if close:
        return f"; did you mean {close!r}?"
    some = sorted(valid)[:MAX_LISTED]
    return f"; valid: {', '.join(some)}{', …' if len(some) < len(valid) else ''}" if valid else ""
