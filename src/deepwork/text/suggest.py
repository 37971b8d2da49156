"""Suggestions for unknown names: the valid name that is most similar."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Sequence

MAX_NAME = 100
MAX_LISTED = 20
# Comparing takes about a tenth of a millisecond for each valid name, and an author may have made very many.
MAX_COMPARED = 300


def nearest(name: str, valid: Sequence[str]) -> str:
    """Say which valid name was probably meant, or list them all; for the end of a message."""
    short_enough = [text for text in valid if len(text) <= MAX_NAME] if len(valid) <= MAX_COMPARED else []
    close = difflib.get_close_matches(name, short_enough, n=1) if len(name) <= MAX_NAME else []
    if close:
        return f"; did you mean {close[0]!r}?"
    some = [text[:MAX_NAME] for text in heapq.nsmallest(MAX_LISTED, valid)]
    return f"; valid: {', '.join(some)}{', …' if len(some) < len(valid) else ''}" if valid else ""
