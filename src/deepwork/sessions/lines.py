"""Which lines of a text are which lines of a later version of it. Pure.

Nothing is guessed: a line counts as the same one only if no other line of the two texts could be meant.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

# So many lines before and after a comment are kept with it.
CONTEXT = 3


@dataclass(frozen=True)
class Place:
    """Lines of a file, counted from 1, the last included."""

    line: int
    end_line: int


def lines_of(content: bytes) -> tuple[bytes, ...]:
    r"""Divide a content as editors do: `\n` ends a line. An empty content has one line, which is empty."""
    lines = content.split(b"\n")
    return tuple(lines[:-1] if len(lines) > 1 and not lines[-1] else lines)


class Held(NamedTuple):
    """What a comment holds on to, whatever happens to the content: digests of its lines and of those around them."""

    lines: Sequence[str]
    before: Sequence[str]
    after: Sequence[str]


def held(lines: Sequence[bytes], place: Place) -> Held:
    """Return what a comment on these lines holds on to."""
    first, last = place.line - 1, place.end_line
    return Held(
        [_digest(line) for line in lines[first:last]],
        [_digest(line) for line in lines[max(0, first - CONTEXT) : first]],
        [_digest(line) for line in lines[last : last + CONTEXT]],
    )


def found(lines: Sequence[bytes], held: Held) -> Place | None:
    """Return where the lines are that a comment holds on to, with those around them; None if that is no one place."""
    sought = [*held.before, *held.lines, *held.after]
    if not held.lines:
        return None
    digests = [_digest(line) for line in lines]
    places = [
        start + len(held.before)
        for start in range(len(digests) - len(sought) + 1)
        if digests[start] == sought[0] and digests[start : start + len(sought)] == sought
    ]
    return Place(places[0] + 1, places[0] + len(held.lines)) if len(places) == 1 else None


def replaced(path: str, content: bytes, place: Place, text: str) -> str:
    """Return the replacement of lines by a text, as a unified diff that `git apply` and `patch -p1` take.

    The new lines end as the old ones do. An empty text removes the lines.
    """
    old = re.findall(rb"[^\n]*\n|[^\n]+", content)
    first, last = place.line - 1, place.end_line
    ending = b"\r\n" if old and old[first : first + 1] and old[first].endswith(b"\r\n") else b"\n"
    new = [line.encode() + ending for line in text.split("\n")] if text else []
    if new and text.endswith("\n"):
        new.pop()
    if new and last == len(old) and not content.endswith(b"\n"):
        new[-1] = new[-1].removesuffix(ending)
    start, end = max(0, first - CONTEXT), min(len(old), last + CONTEXT)
    shown = [b" " + line for line in old[start:first]]
    shown += [b"-" + line for line in old[first:last]]
    shown += [b"+" + line for line in new]
    shown += [b" " + line for line in old[last:end]]
    count, new_count = end - start, end - start - (last - first) + len(new)
    head = (
        f"--- a/{path}\n+++ b/{path}\n"
        f"@@ -{start + 1 if count else start},{count} +{start + 1 if new_count else start},{new_count} @@\n"
    )
    body = b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in shown)
    return head + body.decode("utf-8", "replace")


@dataclass(frozen=True)
class Moves:
    """Where the lines of one text are in another: `to[i]` is the index of line `i` there, or None."""

    to: tuple[int | None, ...]
    length: int

    def same(self, place: Place) -> Place | None:
        """Return where these lines are, if all of them are there unchanged and together."""
        moved = self.to[place.line - 1 : place.end_line]
        if not moved or moved[0] is None or any(other != moved[0] + index for index, other in enumerate(moved)):
            return None
        return Place(moved[0] + 1, moved[0] + len(moved))

    def around(self, place: Place) -> Place | None:
        """Return the lines that stand between the neighbours of these, where they were changed; None if none do."""
        before = next((line for line in reversed(self.to[: place.line - 1]) if line is not None), -1)
        after = next((line for line in self.to[place.end_line :] if line is not None), self.length)
        return Place(before + 2, after) if after > before + 1 else None


@lru_cache(maxsize=256)
def moves(old: tuple[bytes, ...], new: tuple[bytes, ...]) -> Moves:
    """Find the lines of a text in another one."""
    to: list[int | None] = [None] * len(old)
    gaps = [(0, len(old), 0, len(new))]
    while gaps:
        gap = gaps.pop()
        gaps += _between(old, new, _ends(old, new, gap, to), to)
    return Moves(_confirmed(to, len(new)), len(new))


Gap = tuple[int, int, int, int]


def _ends(old: Sequence[bytes], new: Sequence[bytes], gap: Gap, to: list[int | None]) -> Gap:
    """Match the equal lines at both ends of a gap, except for those that could belong to either end."""
    start, end, new_start, new_end = gap
    length, new_length = end - start, new_end - new_start
    shorter = min(length, new_length)
    head = 0
    while head < shorter and old[start + head] == new[new_start + head]:
        head += 1
    tail = 0
    while tail < shorter and old[end - 1 - tail] == new[new_end - 1 - tail]:
        tail += 1
    if head == length == new_length:
        tail = 0
    elif head + tail > shorter:
        head, tail = shorter - tail, shorter - head
        for index in range(head):
            to[start + index] = new_start + index
        for index in range(tail):
            to[end - 1 - index] = new_end - 1 - index
        return end, end, new_end, new_end  # what is left was doubled, or was one of several: nobody knows which
    for index in range(head):
        to[start + index] = new_start + index
    for index in range(tail):
        to[end - 1 - index] = new_end - 1 - index
    return start + head, end - tail, new_start + head, new_end - tail


def _between(old: Sequence[bytes], new: Sequence[bytes], gap: Gap, to: list[int | None]) -> list[Gap]:
    """Match the lines that are there once on each side and in the same order; return the gaps between them."""
    start, end, new_start, new_end = gap
    if start >= end or new_start >= new_end:
        return []
    once = {line for line, count in Counter(old[start:end]).items() if count == 1}
    places = {line: index for index, line in enumerate(new[new_start:new_end], new_start) if line in once}
    counts = Counter(line for line in new[new_start:new_end] if line in once)
    pairs = [
        (index, places[old[index]]) for index in range(start, end) if old[index] in once and counts[old[index]] == 1
    ]
    gaps: list[Gap] = []
    for index, place in _in_order(pairs):
        to[index] = place
        gaps.append((start, index, new_start, place))
        start, new_start = index + 1, place + 1
    return [*gaps, (start, end, new_start, new_end)] if gaps else []


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest part of the pairs that rises on both sides."""
    tops: list[int] = []
    last: list[int] = []
    previous: list[int | None] = []
    for number, (_, place) in enumerate(pairs):
        pile = bisect_left(tops, place)
        previous.append(last[pile - 1] if pile else None)
        tops[pile : pile + 1] = [place]
        last[pile : pile + 1] = [number]
    chain: list[tuple[int, int]] = []
    number_or_none = last[-1] if last else None
    while number_or_none is not None:
        chain.append(pairs[number_or_none])
        number_or_none = previous[number_or_none]
    return chain[::-1]


def _confirmed(to: Sequence[int | None], new_length: int) -> tuple[int | None, ...]:
    """Keep a line only if it stands next to the same line as before, or to the same end of the text."""
    return tuple(
        place
        if place is not None
        and (_next_to(to, index, place, -1, new_length) or _next_to(to, index, place, 1, new_length))
        else None
        for index, place in enumerate(to)
    )


def _next_to(to: Sequence[int | None], index: int, place: int, step: int, new_length: int) -> bool:
    other, other_place = index + step, place + step
    if not 0 <= other < len(to):
        return not 0 <= other_place < new_length
    return to[other] == other_place


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest()[:16]
