"""JSON, also with comments and trailing commas, edited in place: a scanner says which bytes are to be replaced.

A library that loads and dumps would lose comments, the order of keys, or how numbers are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deepwork.builtin.clients.text_edits import (
    Edit,
    Unreadable,
    edited,
    has_line_end,
    line_indent,
    line_start,
    newline_of,
)

MAX_DEPTH = 100

_SPACES = " \t\r\n"
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(rf"{_STRING.pattern}|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null", re.ASCII)
_SPACE = re.compile(r"[ \t\r\n]*")
_SPACE_AND_COMMENTS = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)

# For the second reading, which shares nothing with the scanner.
_ANY_STRING = r'("(?:\\.|[^"\\])*")'
_COMMENT = re.compile(_ANY_STRING + r"|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING_COMMA = re.compile(_ANY_STRING + r"|,(?=\s*[}\]])", re.DOTALL)


@dataclass(frozen=True)
class Value:
    """A value and where it stands; `items` are what is in an object or in a list."""

    start: int
    end: int
    kind: str
    items: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Item:
    """A member of an object, which has a key, or an element of a list; `comma` is where the comma after it stands."""

    start: int
    key: str | None
    value: Value
    comma: int | None


@dataclass(frozen=True)
class JsonSyntax:
    """What a client accepts beside JSON itself."""

    comments: bool = False
    trailing_commas: bool = False

    def document(self, text: str) -> JsonText:
        """Read a text.

        Raises:
            Unreadable: It is not JSON, as this client reads it.
        """
        return JsonText(text, self)

    def data(self, text: str) -> Any:
        """Read a text with the parser of the standard library."""
        text = text.removeprefix("\ufeff")
        if self.comments:
            text = _COMMENT.sub(lambda match: match[1] or " ", text)
        if self.trailing_commas:
            text = _TRAILING_COMMA.sub(lambda match: match[1] or "", text)
        return json.loads(text) if text.strip() else {}


STRICT = JsonSyntax()
WITH_COMMENTS = JsonSyntax(comments=True)
LENIENT = JsonSyntax(comments=True, trailing_commas=True)


class JsonText:
    """A text of JSON. Its methods give the text that it would be with one change."""

    def __init__(self, text: str, syntax: JsonSyntax) -> None:
        self.text = text
        self._root = _Scanner(text, syntax).document()
        self._newline = newline_of(text)

    def with_member(self, keys: Sequence[str], value: Any) -> str:
        """Put a value under these keys; objects on the way are made where they are missing."""
        if self._root is None:
            lead = self.text if self.text.endswith(("\n", "\r", "\ufeff")) else f"{self.text}{self._newline}"
            dumped = self._dump(_nested(keys, value), "")
            return f"{lead if self.text else ''}{dumped}{self._newline}"
        container = self._root
        for depth, key in enumerate(keys):
            _require(self.text, container, "object", keys[:depth])
            item = _member(container, key)
            if item is None:
                return self._with_item(container, key, _nested(keys[depth + 1 :], value))
            container = item.value
        return edited(self.text, [Edit(container.start, container.end, self._replacement(container, value))])

    def with_element(self, keys: Sequence[str], element: Any) -> str:
        """Append an element to the list under these keys, which is made where it is missing."""
        container = self._value(keys)
        if container is None:
            return self.with_member(keys, [element])
        _require(self.text, container, "list", keys)
        return self._with_item(container, None, element)

    def without_member(self, keys: Sequence[str]) -> str:
        """Take out the member under these keys."""
        container = self._value(keys[:-1])
        item = _member(container, keys[-1]) if container else None
        return self._without_item(container, item) if container and item else self.text

    def without_element(self, keys: Sequence[str], index: int) -> str:
        """Take out one element of the list under these keys."""
        container = self._value(keys)
        return self._without_item(container, container.items[index]) if container else self.text

    def _value(self, keys: Sequence[str]) -> Value | None:
        value = self._root
        for depth, key in enumerate(keys):
            if value is None:
                return None
            _require(self.text, value, "object", keys[:depth])
            item = _member(value, key)
            value = item.value if item else None
        return value

    def _with_item(self, container: Value, key: str | None, value: Any) -> str:
        """Append an item after all comments of a container, in the way in which its last item is written."""
        close = container.end - 1
        place = len(self.text[:close].rstrip(_SPACES))
        last = container.items[-1] if container.items else None
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        comma = "," if last and last.comma is not None else ""
        edits = [Edit(last.value.end, last.value.end, ",")] if last and last.comma is None else []
        if last and not has_line_end(self.text[container.start : close]):
            addition = f" {name}{json.dumps(value, ensure_ascii=False)}{comma}"
        else:
            indent = self._indent_in(container)
            addition = f"{self._newline}{indent}{name}{self._dump(value, indent)}{comma}"
            if not has_line_end(self.text[place:close]):
                addition += f"{self._newline}{line_indent(self.text, container.start)}"
        return edited(self.text, [*edits, Edit(place, place, addition)])

    def _indent_in(self, container: Value) -> str:
        """Return the indentation of a container's last item, or that of its first item to be."""
        if container.items:
            start = container.items[-1].start
            indent = line_indent(self.text, start)
            if line_start(self.text, start) + len(indent) == start:
                return indent
        return line_indent(self.text, container.start) + self._unit

    def _without_item(self, container: Value, item: Item) -> str:
        """Take out an item with one of the commas beside it; comments stay, also those on its line."""
        edits = []
        previous = container.items.index(item) - 1
        if item.comma is not None:
            edits.append(Edit(item.comma, item.comma + 1, ""))
        elif previous >= 0 and (comma := container.items[previous].comma) is not None:
            edits.append(Edit(comma, comma + 1, ""))
        after = item.value.end if item.comma is None else item.comma + 1
        start = len(self.text[: item.start].rstrip(" \t"))
        end = item.value.end
        if self.text[after:].lstrip(" \t").startswith(("\n", "\r")):
            if self.text[:start].endswith("\r\n"):
                start -= 2
            elif self.text[:start].endswith(("\n", "\r")):
                start -= 1
        elif item.comma is not None and previous < 0:
            start = item.start
        return edited(self.text, [*edits, Edit(start, end, "")])

    @property
    def _unit(self) -> str:
        """The indentation of the root's first member, which the whole file is taken to use."""
        if self._root and self._root.items:
            first = self._root.items[0].start
            indent = line_indent(self.text, first)
            if indent and line_start(self.text, first) + len(indent) == first:
                return indent
        return "  "

    def _replacement(self, old: Value, value: Any) -> str:
        """Write a value over several lines, unless it replaces one in a file of one line."""
        if not has_line_end(self.text.strip()):
            return json.dumps(value, ensure_ascii=False)
        return self._dump(value, line_indent(self.text, old.start))

    def _dump(self, value: Any, indent: str) -> str:
        return _dumped(value, self._newline + indent, self._unit)


class _Scanner:
    def __init__(self, text: str, syntax: JsonSyntax) -> None:
        self._text = text
        self._syntax = syntax
        self._blank = _SPACE_AND_COMMENTS if syntax.comments else _SPACE
        self._at = 1 if text.startswith("\ufeff") else 0

    def document(self) -> Value | None:
        """Scan the whole text; None if it holds no value."""
        self._skip()
        if self._at == len(self._text):
            return None
        value = self._value(0)
        self._skip()
        if self._at < len(self._text):
            raise self._unexpected("the end of the file")
        return value

    def _value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise Unreadable(self._text, self._at, f"more than {MAX_DEPTH} values are nested")
        start = self._at
        if self._takes("{"):
            items = self._items("}", depth, in_object=True)
            return Value(start, self._at, "object", items)
        if self._takes("["):
            items = self._items("]", depth, in_object=False)
            return Value(start, self._at, "list", items)
        self._match(_SCALAR, "a value")
        return Value(start, self._at, "scalar")

    def _items(self, close: str, depth: int, *, in_object: bool) -> tuple[Item, ...]:
        items: list[Item] = []
        self._skip()
        while not self._takes(close):
            start = self._at
            key = self._key() if in_object else None
            value = self._value(depth + 1)
            self._skip()
            comma = self._at - 1 if self._takes(",") else None
            self._skip()
            items.append(Item(start, key, value, comma))
            if comma is None and self._text[self._at : self._at + 1] != close:
                raise self._unexpected(f"a comma or {close!r}")
            if comma is not None and self._text[self._at : self._at + 1] == close and not self._syntax.trailing_commas:
                raise Unreadable(self._text, comma, f"there is a comma before {close!r}, which this client refuses")
        return tuple(items)

    def _key(self) -> str:
        key: str = json.loads(self._match(_STRING, "a name in quotes"))
        self._skip()
        if not self._takes(":"):
            raise self._unexpected("a colon")
        self._skip()
        return key

    def _skip(self) -> None:
        match = self._blank.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _takes(self, character: str) -> bool:
        if not self._text.startswith(character, self._at):
            return False
        self._at += 1
        return True

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise self._unexpected(what)
        self._at = match.end()
        return match[0]

    def _unexpected(self, expected: str) -> Unreadable:
        rest = self._text[self._at :]
        if rest.startswith(("//", "/*")) and not self._syntax.comments:
            return Unreadable(self._text, self._at, "there is a comment, which this client refuses")
        return Unreadable(
            self._text, self._at, f"{rest[:1]!r} where {expected} should be" if rest else f"{expected} is missing"
        )


def _dumped(value: Any, line: str, unit: str) -> str:
    """Write a value over several lines that begin with `line`; a list of texts or numbers is one line."""
    if isinstance(value, dict) and value:
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {_dumped(item, line + unit, unit)}" for key, item in value.items()
        ]
        return f"{{{line}{unit}{f',{line}{unit}'.join(parts)}{line}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        parts = [_dumped(item, line + unit, unit) for item in value]
        return f"[{line}{unit}{f',{line}{unit}'.join(parts)}{line}]"
    return json.dumps(value, ensure_ascii=False)


def _member(container: Value, key: str) -> Item | None:
    """Return the member of this key, the last if there are several: parsers keep that."""
    return next((item for item in reversed(container.items) if item.key == key), None)


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _require(text: str, value: Value, kind: str, keys: Sequence[str]) -> None:
    if value.kind != kind:
        name = ".".join(keys) or "the whole file"
        raise Unreadable(text, value.start, f"{name} should be {'an object' if kind == 'object' else 'a list'}")
