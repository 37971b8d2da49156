"""Limits of YAML documents. A few bytes can stand for gigabytes, so they are checked before anything is built."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml

from deepwork.documents.problems import DocumentError, Problem

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_NUMBER = 500
MAX_DIRECTIVES = 100
SMALL_SIZE = 64 * 1024

# PyYAML may lack libyaml, which is ten times as fast.
SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_LINE_START = re.compile(r"^[\s?:-]*", re.MULTILINE)
_LONG_NUMBER = re.compile(rf"[0-9_:.+-]{{{MAX_NUMBER + 1}}}")


class _Size(NamedTuple):
    """The size of a value: the values in it, itself included, their characters, and the levels below it."""

    values: int
    characters: int
    depth: int


class _OpenCollection:
    """A mapping or sequence whose end has not been read yet."""

    __slots__ = ("anchor", "characters_before", "depth", "values_before")

    def __init__(self, anchor: str | None, values_before: int, characters_before: int) -> None:
        self.anchor = anchor
        self.values_before = values_before
        self.characters_before = characters_before
        self.depth = 0


class _Measurement:
    """The size of a document, event by event. An alias counts as much as the value that it stands for."""

    def __init__(self) -> None:
        self._values = 0
        self._characters = 0
        self._open = [_OpenCollection(None, 0, 0)]  # the document itself first
        self._anchors: dict[str | None, _Size] = {}

    def add(self, event: yaml.Event) -> None:
        """Count an event.

        Raises:
            DocumentError: It makes the document larger than a document may be.
        """
        if isinstance(event, yaml.ScalarEvent):
            depth = self._add_scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            depth = self._add_alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open.append(_OpenCollection(event.anchor, self._values, self._characters))
            self._values += 1
            depth = 0
        elif isinstance(event, yaml.CollectionEndEvent):
            depth = self._end_collection()
        else:
            return
        parent = self._open[-1]
        parent.depth = max(parent.depth, depth)
        if self._values > MAX_NODES:
            raise _error(f"more than {MAX_NODES:,} values, aliases counted in full", event)
        if self._characters > MAX_BYTES:
            raise _error(f"more than {MAX_BYTES:,} characters, aliases counted in full", event)
        if len(self._open) - 1 + parent.depth > MAX_DEPTH:
            raise _error(f"nested deeper than {MAX_DEPTH} levels, aliases included", event)

    def _add_scalar(self, event: yaml.ScalarEvent) -> int:
        length = len(event.value)
        # PyYAML's patterns for numbers take forty times the memory of the text.
        if length > MAX_NUMBER and event.implicit[0] and not event.value[:MAX_NUMBER].strip("0123456789_:.+-"):
            raise _error(f"a number of more than {MAX_NUMBER} digits", event)
        self._values += 1
        self._characters += length
        if event.anchor:
            self._anchors[event.anchor] = _Size(1, length, 0)
        return 0

    def _add_alias(self, event: yaml.AliasEvent) -> int:
        if any(collection.anchor == event.anchor for collection in self._open):
            raise _error(f"alias *{event.anchor} contains itself", event)
        size = self._anchors.get(event.anchor, _Size(0, 0, 0))  # the loader refuses an unknown one
        self._values += size.values
        self._characters += size.characters
        return size.depth

    def _end_collection(self) -> int:
        collection = self._open.pop()
        depth = collection.depth + 1
        if collection.anchor:
            values = self._values - collection.values_before
            self._anchors[collection.anchor] = _Size(values, self._characters - collection.characters_before, depth)
        return depth


def check_limits(text: str) -> None:
    """Refuse a text that would become too large, too deep or too slow to build.

    Reading the events of a text, without building anything, takes almost no memory.

    Raises:
        DocumentError: The first limit that the text exceeds.
    """
    # libyaml compares each %TAG directive with all before it.
    if sum(text.count(f"{line_end}%") for line_end in "\n\r\x85\u2028\u2029") > MAX_DIRECTIVES:
        raise DocumentError(Problem(f"more than {MAX_DIRECTIVES} lines begin with %"))
    if _is_small(text):
        return
    measurement = _Measurement()
    for event in yaml.parse(text, Loader=SafeLoader):
        measurement.add(event)


def _is_small(text: str) -> bool:
    """True if a text is too short and plain to reach any limit. Almost all are, and need no events."""
    if len(text) > SMALL_SIZE or "&" in text or _LONG_NUMBER.search(text):
        return False
    # A column can begin a mapping and, for its value, a sequence; other collections begin with a bracket.
    deepest = 2 * max(map(len, _LINE_START.findall(text)), default=0) + 2
    return deepest + text.count("[") + text.count("{") <= MAX_DEPTH


def _error(message: str, event: yaml.Event) -> DocumentError:
    return DocumentError(Problem(message, event.start_mark.line + 1 if event.start_mark else None))
