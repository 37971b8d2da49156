"""Lists for people, a page at a time: what is asked for, and what there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class ListQuery(NamedTuple):
    """Which rows of a list are asked for.

    Attributes:
        words: Each of them is in a name or a text of the row, in any case.
        limit: At most this many rows.
        offset: Without this many of the first ones.
    """

    words: Sequence[str] = ()
    limit: int = 50
    offset: int = 0


class Rows(NamedTuple):
    """One page of a list, and how long the whole list is."""

    rows: list[dict[str, Any]]
    total: int
