"""Suggestions for unknown names: the valid name that is most similar."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Sequence

from deepwork.text.foreign import visible

MAX_NAME = 100
MAX_LISTED = 20
# Comparing takes about a tenth of a millisecond for each valid name, and an author may have made very many.
MAX_COMPARED = 300
# From this likeness on (0 to 1) a name counts as a slip of the other; below it a suggestion misleads.
NEAR = 0.75


def near(name: str, valid: Sequence[str]) -> str | None:
    """Give the valid name that was probably meant; None if none is near."""
    if len(name) > MAX_NAME or len(valid) > MAX_COMPARED:
        return None
    short_enough = [text for text in valid if len(text) <= MAX_NAME]
    close = difflib.get_close_matches(name, short_enough, n=1, cutoff=NEAR)
    return close[0] if close else None


def nearest(name: str, valid: Sequence[str]) -> str:
    """Say which valid name was probably meant, or list them all; for the end of a message."""
    close = near(name, valid)
    if close:
        return f"; did you mean {close!r}?"
    some = [visible(text[:MAX_NAME]) for text in heapq.nsmallest(MAX_LISTED, valid)]
    return f"; valid: {', '.join(some)}{', …' if len(some) < len(valid) else ''}" if valid else ""
