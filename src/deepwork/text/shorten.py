"""Text and values that may be of any length, cut for a message."""

from __future__ import annotations

from deepwork.text.escape import visible

MAX_VALUE = 60
MAX_LINE = 200


def shorten(text: str, limit: int) -> str:
    """Cut a text to so many characters; the last of them then says that it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """Make a short line of a text that somebody else wrote: without line ends, and without invisible characters."""
    if len(text) <= limit and text.isprintable():
        return text
    # Only the beginning is shown, so the rest, which can be very long, is not looked at.
    line = visible(" ".join(text[: 2 * limit].split()))
    return shorten(f"{line}…" if len(text) > 2 * limit else line, limit)


def quoted(value: object, limit: int = MAX_VALUE) -> str:
    """Write a value as Python does, so that it is one line and its ends can be seen; a long one is cut."""
    return repr(shorten(value, limit)) if isinstance(value, str) else shorten(repr(value), limit)
