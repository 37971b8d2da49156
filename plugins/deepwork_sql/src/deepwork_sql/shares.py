"""Orders the rows of a query by turns, so that a list that is cut has something of each group."""

from __future__ import annotations

from collections.abc import Sequence


def in_turns(candidates: str, order: Sequence[str], groups: Sequence[str]) -> str:
    """Return a query for the rows of another one, each group with its first row before any has its second.

    Args:
        candidates: The query for the rows, which are all sorted, so long texts do not belong there.
        order: The columns that order the rows of a group, ascending.
        groups: The columns that name the group of a row, from the widest to the narrowest: the turns of a wider group
            are divided among the narrower ones in it.

    Returns:
        The columns of the candidates, and `total`: how many there are without the caller's limit.
    """
    rows = f"SELECT candidates.*, count(*) OVER () AS total FROM ({candidates}) AS candidates"
    turns: list[str] = []
    for width in range(len(groups), 0, -1):
        window = f"PARTITION BY {', '.join(groups[:width])} ORDER BY {', '.join([*turns, *order])}"
        rows = f"SELECT turns.*, row_number() OVER ({window}) AS turn_{width} FROM ({rows}) AS turns"
        turns.insert(0, f"turn_{width}")
    return f"SELECT * FROM ({rows}) AS turns ORDER BY {', '.join([*turns, *order])}"
