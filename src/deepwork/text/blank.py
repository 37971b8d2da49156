"""Texts that say nothing to whoever sees them."""

from __future__ import annotations

from unicodedata import category

# Letters and symbols that are drawn as nothing: the fillers of Hangul, the empty pattern of Braille, a null note head.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\U0001d159")
# Control and format characters, separators, and marks that stand on another character.
_UNSEEN_CLASSES = frozenset("CZM")


def is_blank(text: str) -> bool:
    """Say whether nothing of a text can be seen."""
    return all(char in _FILLERS or category(char)[0] in _UNSEEN_CLASSES for char in text)
