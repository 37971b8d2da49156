"""A text whose lines are known by number, however it is edited."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

# Lines as programs have them again and again.
COMMON = ("", "}", "    return None", "    pass", "", "# ---")

# The number of a line, and what it says. A line keeps its number when it is moved or edited.
Line = tuple[int, str]


class EditedText:
    """A text and its edits: lines are added, removed, changed, moved and copied."""

    def __init__(self, dice: random.Random, length: int) -> None:
        self._dice = dice
        self._count = 0
        self._doubled: set[int] = set()
        self.versions: list[list[Line]] = [[self._new() for _ in range(length)]]

    @property
    def lines(self) -> list[Line]:
        """The newest version."""
        return self.versions[-1]

    @property
    def content(self) -> str:
        """The newest version as it is written to a file."""
        return "".join(f"{text}\n" for _, text in self.lines)

    def edit(self, share: float) -> None:
        """Make a new version with edits at this share of the lines; the file differs then.

        What is copied is not moved as well: no reader could tell which of the two is which.
        """
        lines = [*self.lines]
        self._doubled = set()
        for _ in range(max(1, int(len(lines) * share))):
            self._edit(lines)
        lines.append((self._numbered(), f"version {len(self.versions) + 1}"))
        self.versions.append(as_read(self.lines, lines))

    def where(self, numbers: Sequence[int], texts: Sequence[str]) -> int | None:
        """Return at which line these stand now, together and unchanged; None if they do not."""
        places = {number: (place, text) for place, (number, text) in enumerate(self.lines, 1)}
        lines = [places.get(number) for number in numbers]
        first = lines[0]
        if first is None:
            return None
        expected = [(first[0] + index, text) for index, text in enumerate(texts)]
        return first[0] if lines == expected else None

    def _edit(self, lines: list[Line]) -> None:
        start, kind = self._dice.randrange(len(lines)), self._dice.random()
        end, to = start + self._dice.randint(1, 4), self._dice.randrange(len(lines))
        if kind < 0.3:
            lines[start:start] = [self._new() for _ in range(end - start)]
        elif kind < 0.55:
            del lines[start:end]
        elif kind < 0.9:
            lines[start:end] = [(number, self._fresh(number)) for number, _ in lines[start:end]]
        elif self._doubled.intersection(number for number, _ in lines[start:end]):
            return
        elif kind < 0.95:
            block = lines[start:end]
            self._doubled.update(number for number, _ in block)
            del lines[start:end]
            lines[to:to] = block
        else:
            self._doubled.update(number for number, _ in lines[start:end])
            lines[to:to] = [(self._numbered(), text) for _, text in lines[start:end]]
        if not lines:
            lines.append(self._new())

    def _new(self) -> Line:
        number = self._numbered()
        return number, self._dice.choice(COMMON) if self._dice.random() < 0.4 else self._fresh(number)

    def _numbered(self) -> int:
        self._count += 1
        return self._count

    def _fresh(self, number: int) -> str:
        return f"line {number} {self._dice.randrange(10**6)}"


def as_read(old: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    """Number a new version as its reader would, who sees texts alone.

    A line that is gone from its place, where an equal one stands beside the same neighbour, is still there. One that
    both versions have once was moved, even if it was copied and then changed.
    """
    lines = _moved(old, new)
    is_changed = True
    while is_changed:
        places = {number: place for place, (number, _) in enumerate(lines)}
        is_changed = any(_put_back(old, lines, places, index) for index in range(len(old)))
    return lines


def _moved(old: Sequence[Line], new: Sequence[Line]) -> list[Line]:
    counts, new_counts = Counter(text for _, text in old), Counter(text for _, text in new)
    numbers = {text: number for number, text in old if counts[text] == 1 == new_counts[text]}
    taken = {*numbers.values()}
    return [
        (numbers[text], text) if text in numbers else (-number if number in taken else number, text)
        for number, text in new
    ]


def _put_back(old: Sequence[Line], lines: list[Line], places: dict[int, int], index: int) -> bool:
    number, text = old[index]
    old_numbers = {number for number, _ in old}
    if number in places and lines[places[number]][1] == text:
        return False
    for step in (-1, 1):
        neighbour = old[index + step] if 0 <= index + step < len(old) else None
        if neighbour is None or neighbour[0] not in places or lines[places[neighbour[0]]] != neighbour:
            continue
        place = places[neighbour[0]] - step
        if 0 <= place < len(lines) and lines[place][1] == text and lines[place][0] not in old_numbers:
            if number in places:
                lines[places[number]] = (-number, lines[places[number]][1])
            lines[place] = (number, text)
            return True
    return False
