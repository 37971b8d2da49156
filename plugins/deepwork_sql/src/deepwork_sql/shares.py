"""Orders the rows of a query by turns, so that a list that is cut has something of everybody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, func, select


def in_turns(candidates: Select[Any], *, order: Sequence[str], groups: Sequence[str]) -> Select[Any]:
    """Select the rows of a query so that each group has its first row before any has its second.

    Args:
        candidates: The rows, with a name for each column. They are all sorted, so long texts do not belong there.
        order: The columns by which a row comes before another of its group, ascending.
        groups: The columns that name the group of a row, from the widest to the narrowest: the turns of a wider group
            are divided among the narrower ones in it.

    Returns:
        The columns of the candidates, and `total`: how many there are, whatever the limit that the caller sets is.
    """
    rows = select(candidates.subquery(), func.count().over().label("total")).subquery()
    turns: list[Any] = []
    for width in range(len(groups), 0, -1):
        by = [*(rows.c[turn] for turn in turns), *(rows.c[name] for name in order)]
        partition = [rows.c[name] for name in groups[:width]]
        turn = func.row_number().over(partition_by=partition, order_by=by).label(f"turn_{width}")
        rows = select(rows, turn).subquery()
        turns.insert(0, turn.name)
    return select(rows).order_by(*(rows.c[turn] for turn in turns), *(rows.c[name] for name in order))
