"""What was read last, by a key that differs once it has changed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")


class Recent(Generic[ItemT]):
    """A cache of limited size, which drops the item used longest ago."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: dict[Hashable, ItemT] = {}

    def get(self, key: Hashable) -> ItemT | None:
        """Return an item, if it is still here."""
        item = self._items.pop(key, None)
        if item is not None:
            self._items[key] = item
        return item

    def put(self, key: Hashable, item: ItemT) -> None:
        """Keep an item."""
        self._items.pop(key, None)
        self._items[key] = item
        if len(self._items) > self._size:
            del self._items[next(iter(self._items))]
