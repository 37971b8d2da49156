"""Counts tokens: exactly with the tokenizer of the extra `tokens`, and roughly without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from deepwork_orchestration.arguments import compact

# More characters than tokens of most texts have.
_FEW_CHARACTERS = 8


@dataclass(frozen=True)
class Estimator:
    """A way to count the tokens of a text, by the name that answers give it."""

    name: str
    count: Callable[[str], int]


@lru_cache(maxsize=1)
def estimator() -> Estimator:
    """Return the best estimator that is installed."""
    try:
        from splintr import Tokenizer
    except ImportError:
        return Estimator("utf8_bytes/3", lambda text: -(-len(text.encode()) // 3))
    tokenizer = Tokenizer.from_pretrained("o200k_base")
    return Estimator("o200k_base", lambda text: len(tokenizer.encode_ordinary(text)))


def estimate(value: Any) -> int:
    """Count the tokens of a value as compact JSON."""
    return estimator().count(compact(value))


def count_up_to(text: str, most: int) -> int:
    """Count the tokens of a text; if there are more than `most`, no further than is needed to know that."""
    length = _FEW_CHARACTERS * most + _FEW_CHARACTERS
    while length < len(text):
        counted = estimator().count(text[:length])
        # What follows a cut may be one token with the last characters before it, but never with many.
        if counted > most + _FEW_CHARACTERS:
            return counted
        length *= 4
    return estimator().count(text)


def estimate_text(value: Any) -> int:
    """Count the tokens of a text as it stands, or of anything else as compact JSON."""
    return estimator().count(value) if isinstance(value, str) else estimate(value)
