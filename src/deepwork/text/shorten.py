"""Text and values that may be of any length, cut for a message."""

from __future__ import annotations

MAX_VALUE = 60


def shorten(text: str, limit: int) -> str:
    """Cut a text to so many characters; the last of them then says that it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def quoted(value: object, limit: int = MAX_VALUE) -> str:
    """Write a value as Python does, so that it is one line and its ends can be seen; a long one is cut."""
    return repr(shorten(value, limit)) if isinstance(value, str) else shorten(repr(value), limit)
