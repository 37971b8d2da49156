"""Suggestions for unknown names: the valid name that is most similar."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

MAX_NAME = 100
MAX_LISTED = 20


def nearest(name: str, valid: Sequence[str]) -> str:
    """Say which valid name was probably meant, or list them all; for the end of a message."""
    close = difflib.get_close_matches(name, valid, n=1) if len(name) <= MAX_NAME else []
    if close:
        return f"; did you mean {close[0]!r}?"
    some = sorted(valid)[:MAX_LISTED]
    return f"; valid: {', '.join(some)}{', …' if len(some) < len(valid) else ''}" if valid else ""
