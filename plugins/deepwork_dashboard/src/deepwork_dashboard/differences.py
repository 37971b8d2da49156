"""What differs between two texts, line by line: what a page shows as removed and added."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from deepwork.sessions.lines import moves

Lines = tuple[bytes, ...]

# So many pairs of lines of one comparison are looked at by difflib, which takes long; what is left counts as replaced.
MAX_PAIRS = 1_000_000


class Change(NamedTuple):
    """Lines that were replaced; lines are counted from 1."""

    old_line: int
    removed: Lines
    line: int
    added: int


def changes(old: Lines, new: Lines) -> list[Change]:
    """Return what to replace in the old lines to get the new ones, in order."""
    edits: list[Change] = []
    before, after = 0, 0
    for index, new_index in (*_matches(old, new), (len(old), len(new))):
        if before < index or after < new_index:
            edits.append(Change(before + 1, old[before:index], after + 1, new_index - after))
        before, after = index + 1, new_index + 1
    return edits


def _matches(old: Lines, new: Lines) -> Iterator[tuple[int, int]]:
    """Pair equal lines: first those that are surely the same, as comments move with them, then difflib's between."""
    before, after, budget = 0, 0, MAX_PAIRS
    sure = ((index, new_index) for index, new_index in enumerate(moves(old, new).to) if new_index is not None)
    for index, new_index in (*sure, (len(old), len(new))):
        gap, new_gap = old[before:index], new[after:new_index]
        start = _equal(gap, new_gap)
        end = min(_equal(gap[::-1], new_gap[::-1]), len(gap) - start, len(new_gap) - start)
        yield from ((before + step, after + step) for step in range(start))
        middle, new_middle = gap[start : len(gap) - end], new_gap[start : len(new_gap) - end]
        pairs = len(middle) * len(new_middle)
        if 0 < pairs <= budget:
            budget -= pairs
            for place, new_place, size in SequenceMatcher(None, middle, new_middle).get_matching_blocks():
                lines = range(start, start + size)
                yield from ((before + place + line, after + new_place + line) for line in lines)
        yield from ((index - step, new_index - step) for step in range(end, 0, -1))
        if index < len(old):
            yield index, new_index
        before, after = index + 1, new_index + 1


def _equal(old: Lines, new: Lines) -> int:
    """Return how many lines both begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    return sum(1 for _ in same)
