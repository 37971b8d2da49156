"""Which lines of a text are which lines of a later version of it. Pure.

Nothing is guessed: a line counts as the same one only if no other line of the two texts could be meant.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

# So many lines before and after a comment are kept with it.
CONTEXT = 3
# So many in the diff of a suggestion, for which an agent pays; with none `git apply` would not take it.
DIFF_CONTEXT = 1


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
    """The digests of a comment's lines and of those around them, which find the lines again in a changed content."""

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
    """Return the place of a comment's lines, with those around them; None if there is not exactly one."""
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
    if new and new[-1] != ending and last == len(old) and not content.endswith(b"\n"):
        new[-1] = new[-1].removesuffix(ending)
    start, end = max(0, first - DIFF_CONTEXT), min(len(old), last + DIFF_CONTEXT)
    rows = [b" " + line for line in old[start:first]]
    rows += [b"-" + line for line in old[first:last]]
    rows += [b"+" + line for line in new]
    rows += [b" " + line for line in old[last:end]]
    count, new_count = end - start, end - start - (last - first) + len(new)
    head = (
        f"--- a/{path}\n+++ b/{path}\n"
        f"@@ -{start + 1 if count else start},{count} +{start + 1 if new_count else start},{new_count} @@\n"
    )
    body = b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in rows)
    return head + body.decode("utf-8", "replace")


@dataclass(frozen=True)
class Moves:
    """Where the lines of one text are in another: `to[i]` is the index of line `i` there, or None."""

    to: tuple[int | None, ...]
    length: int

    def same(self, place: Place) -> Place | None:
        """Return where these lines are, if all of them are there unchanged and together."""
        moved = self.to[place.line - 1 : place.end_line]
        if not moved or moved[0] is None or any(target != moved[0] + index for index, target in enumerate(moved)):
            return None
        return Place(moved[0] + 1, moved[0] + len(moved))

    def around(self, place: Place) -> Place | None:
        """Return the lines that stand between the neighbours of these, where they were changed; None if none do."""
        above = (self.to[index] for index in range(place.line - 2, -1, -1))
        below = (self.to[index] for index in range(place.end_line, len(self.to)))
        before = next((line for line in above if line is not None), -1)
        after = next((line for line in below if line is not None), self.length)
        return Place(before + 2, after) if after > before + 1 else None


def moves(old: Sequence[bytes], new: Sequence[bytes]) -> Moves:
    """Find the lines of a text in another one: the unique lines, and between two of them again."""
    to: list[int | None] = [None] * len(old)
    gaps = [(0, len(old), 0, len(new))]
    while gaps:
        start, end, new_start, new_end = gap = gaps.pop()
        if old[start:end] == new[new_start:new_end]:
            to[start:end] = range(new_start, new_end)
        else:
            gaps += _between(old, new, gap, to)
    return Moves(tuple(_confirmed(to, old, new)), len(new))


Gap = tuple[int, int, int, int]


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


def _confirmed(to: Sequence[int | None], old: Sequence[bytes], new: Sequence[bytes]) -> list[int | None]:
    """Keep lines that stand together as before: with a line that both texts have once, or at an end.

    A removed line and an equal line elsewhere could be confused otherwise.
    """
    counts, new_counts = Counter(old), Counter(new)
    confirmed: list[int | None] = [None] * len(to)
    for run in _runs(to):
        first, last = to[run.start], to[run.stop - 1]
        is_at_end = (run.start == 0 and first == 0) or (run.stop == len(to) and last == len(new) - 1)
        has_own = any(counts[old[index]] == 1 == new_counts[old[index]] for index in run)
        if is_at_end or (has_own and len(run) > 1):
            confirmed[run.start : run.stop] = to[run.start : run.stop]
    return confirmed


def _runs(to: Sequence[int | None]) -> Iterator[range]:
    """Yield the longest stretches of lines that still stand one below the other."""
    start = 0
    for index in range(1, len(to) + 1):
        before = to[index - 1]
        if index < len(to) and before is not None and to[index] == before + 1:
            continue
        if before is not None:
            yield range(start, index)
        start = index


def _digest(line: bytes) -> str:
    return sha256(line).hexdigest()[:16]
