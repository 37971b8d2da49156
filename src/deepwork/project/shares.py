"""Cuts a list that is too long so that no source of entries pushes out those of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

EntryT = TypeVar("EntryT")


def cut_fairly(
    entries: Sequence[EntryT], limit: int, *groups: Callable[[EntryT], Hashable]
) -> tuple[list[EntryT], int]:
    """Return at most `limit` of the entries in their order, and how many are left out.

    Every group gets its first entry before any gets its second, and so on.

    Args:
        entries: Those that matter most come first.
        limit: How many are kept.
        *groups: The group of an entry, from the narrowest to the widest: a share of a wider group is divided among the
            narrower ones in it.
    """
    places = list(range(len(entries)))
    if len(entries) > limit:
        for group in groups:
            counts: Counter[Hashable] = Counter()
            turns = {}
            for place in places:
                turns[place] = counts[group(entries[place])]
                counts[group(entries[place])] += 1
            places.sort(key=turns.__getitem__)
    return [entries[place] for place in sorted(places[:limit])], max(0, len(entries) - limit)
