"""Bounds of what an agent may send."""

from __future__ import annotations

from deepwork.errors import ArgumentError
from deepwork.text.foreign import is_blank

MAX_TEXT_BYTES = 64 * 1024
MAX_NAME_BYTES = 1024


def check_texts(**texts: str | None) -> None:
    """Refuse texts over 64 KiB, naming the parameter."""
    _check(MAX_TEXT_BYTES, "64 KiB", texts)


def check_names(**names: str | None) -> None:
    """Refuse names and ids over 1 KiB, naming the parameter."""
    _check(MAX_NAME_BYTES, "1 KiB", names)


def require_texts(**texts: str) -> None:
    """Refuse texts that say nothing, naming the parameter."""
    for name, text in texts.items():
        if is_blank(text):
            raise ArgumentError(f"{name} is empty; nothing was changed", hint=f"Give {name} in a sentence.")


def _check(limit: int, limit_text: str, values: dict[str, str | None]) -> None:
    for name, value in values.items():
        try:
            size = len((value or "").encode())
        except UnicodeEncodeError:
            raise ArgumentError(
                f"{name} contains half of a surrogate pair, which is not a character; send it as UTF-8 text"
            ) from None
        if size > limit:
            raise ArgumentError(f"{name} has {size:,} bytes; the limit is {limit_text}. Put details into a file.")
