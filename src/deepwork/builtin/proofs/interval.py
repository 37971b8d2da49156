"""The exact interval of a share that was counted (Clopper and Pearson), at 95 %."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

_TAIL = 0.025
_STEPS = 60


def exact_interval(killed: int, of: int) -> tuple[float, float]:
    """Return between which shares the true one lies with 95 % certainty, if `killed` of `of` were counted."""
    if not of:
        return 0.0, 1.0
    lower = 0.0 if killed == 0 else _root(lambda share: 1 - _at_most(killed - 1, of, share) - _TAIL)
    upper = 1.0 if killed == of else _root(lambda share: _TAIL - _at_most(killed, of, share))
    return lower, upper


def _at_most(count: int, of: int, share: float) -> float:
    return sum(comb(of, one) * share**one * (1 - share) ** (of - one) for one in range(count + 1))


def _root(rising: Callable[[float], float]) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return (low + high) / 2
