"""TOML, edited in place: a scanner says which statements are ours, and only those are replaced.

`tomlkit` is not used: it refuses a byte order mark, and puts a new table between the dotted keys of another one.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from deepwork.builtin.clients.text_edits import Edit, Unreadable, edited, newline_of

_POSITION = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(r"""\"{3}(?:\\.|[^\\])*?\"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\r\n])*"|'[^'\r\n]*'""", re.DOTALL)
_KEY = re.compile(rf"(?:{_BARE.pattern}|{_STRING.pattern}|[ \t]*\.[ \t]*)+", re.DOTALL)
_PLAIN_VALUE = re.compile(r"[^,\[\]{}#\r\n]+")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r?\n|$)")
_SPACES = re.compile(r"[ \t]*")

Keys = Sequence[str]


@dataclass(frozen=True)
class Statement:
    """A header of a table, or a key with its value, which stands at `value`.

    Attributes:
        end: After its line end or, in an inline table, after its value.
        table: The keys of the table in which it stands.
        keys: The keys of what it says, those of the table included.
    """

    start: int
    end: int
    table: tuple[str, ...]
    keys: tuple[str, ...]
    value: tuple[int, int] | None


class TomlSyntax:
    """TOML as a format of files."""

    def document(self, text: str) -> TomlText:
        """Read a text.

        Raises:
            Unreadable: It is not TOML.
        """
        try:
            self.data(text)
        except tomllib.TOMLDecodeError as error:
            raise _unreadable(text, str(error)) from None
        return TomlText(text)

    def data(self, text: str) -> Any:
        """Read a text with the parser of the standard library.

        Raises:
            ValueError: It is not TOML, or too much is nested in it.
        """
        try:
            return tomllib.loads(text.removeprefix("\ufeff"))
        except RecursionError:
            raise tomllib.TOMLDecodeError("too many values are nested (at end of document)") from None


class TomlText:
    """A text of TOML. Its methods give the text that it would be with one change."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._newline = newline_of(text)
        self._statements = list(_statements(text))

    def with_member(self, keys: Keys, value: Any) -> str:
        """Put a table under these keys: where it stood, inside of an inline table, or at the end of the file."""
        if inline := self._inline(keys):
            return self._with_inline(inline, keys, value)
        ours = self._ours(keys)
        if not ours:
            return self._appended(keys, value)
        first = ours[0]
        if first.value is None:
            written = self._table(keys, value)
        else:
            name = ".".join(map(_key, tuple(keys)[len(first.table) :]))
            written = f"{name} = {_dumped(value)}{self._newline}"
        return edited(self.text, [Edit(first.start, first.end, written), *_cuts(ours[1:])])

    def without_member(self, keys: Keys) -> str:
        """Take out everything under these keys; comments between its lines stay."""
        if inline := self._inline(keys):
            return self._without_inline(inline, keys)
        ours = self._ours(keys)
        cuts = _cuts(ours)
        if ours and ours[0].value is None:
            # The blank line above belongs to the table, as it does when one is appended.
            start, lead = ours[0].start, self._newline * 2
            if self.text[:start].endswith(lead):
                cuts[0] = Edit(start - len(self._newline), ours[0].end, "")
        return edited(self.text, cuts)

    def _ours(self, keys: Keys) -> list[Statement]:
        return [statement for statement in self._statements if statement.keys[: len(keys)] == tuple(keys)]

    def _inline(self, keys: Keys) -> Statement | None:
        """Return the statement whose value is, or has to contain, the value under these keys."""
        for statement in self._statements:
            if statement.value and tuple(keys)[: len(statement.keys)] == statement.keys:
                return statement
        return None

    def _with_inline(self, statement: Statement, keys: Keys, value: Any) -> str:
        start, end = statement.value or (0, 0)
        if len(statement.keys) == len(keys):
            return edited(self.text, [Edit(start, end, _dumped(value))])
        if not self._is_inline_table(statement):
            raise Unreadable(self.text, statement.start, f"{'.'.join(statement.keys)} should be a table")
        members = list(_members(self.text, statement))
        for member in members:
            if member.keys == tuple(keys)[: len(member.keys)]:
                return self._with_inline(member, keys, value)
        ours = [member for member in members if member.keys[: len(keys)] == tuple(keys)]
        if ours:
            text = self._without_members(members, ours)
            return TomlText(text).with_member(keys, value)
        place = len(self.text[: end - 1].rstrip(" \t"))
        name = ".".join(map(_key, tuple(keys)[len(statement.keys) :]))
        addition = f"{', ' if members else ' '}{name} = {_dumped(value)}{'' if members else ' '}"
        return edited(self.text, [Edit(place, place, addition)])

    def _without_inline(self, statement: Statement, keys: Keys) -> str:
        if len(statement.keys) == len(keys):
            return edited(self.text, [Edit(statement.start, statement.end, "")])
        if not self._is_inline_table(statement):
            return self.text
        members = list(_members(self.text, statement))
        for member in members:
            if len(member.keys) < len(keys) and member.keys == tuple(keys)[: len(member.keys)]:
                return self._without_inline(member, keys)
        ours = [member for member in members if member.keys[: len(keys)] == tuple(keys)]
        return self._without_members(members, ours)

    def _without_members(self, members: list[Statement], ours: list[Statement]) -> str:
        """Take out members of an inline table, each with the comma after it, or the last with the comma before it."""
        remaining = [member for member in members if member not in ours]
        cuts = []
        for member in ours:
            following = [other for other in remaining if other.start > member.start]
            index = members.index(member)
            if following:
                cuts.append(Edit(member.start, members[index + 1].start, ""))
            else:
                start = members[index - 1].end if index else member.start
                cuts.append(Edit(start, member.end, ""))
        return edited(self.text, cuts)

    def _is_inline_table(self, statement: Statement) -> bool:
        return statement.value is not None and self.text.startswith("{", statement.value[0])

    def _appended(self, keys: Keys, value: Any) -> str:
        for statement in self._statements:
            is_list = statement.value is None and self.text.startswith("[[", statement.start)
            if is_list and statement.keys == tuple(keys)[: len(statement.keys)]:
                problem = f"{'.'.join(statement.keys)} should be a table, not a list of tables"
                raise Unreadable(self.text, statement.start, problem)
        text = self.text
        if text.removeprefix("\ufeff"):
            text += self._newline if text.endswith("\n") else self._newline * 2
        return text + self._table(keys, value)

    def _table(self, keys: Keys, value: dict[str, Any]) -> str:
        lines = [f"[{'.'.join(map(_key, keys))}]", *(f"{_key(name)} = {_dumped(item)}" for name, item in value.items())]
        return "".join(f"{line}{self._newline}" for line in lines)


def _statements(text: str) -> Iterator[Statement]:
    at = 1 if text.startswith("\ufeff") else 0
    table: tuple[str, ...] = ()
    while (at := _after(_BLANK, text, at)) < len(text):
        start = at
        if text.startswith("[", at):
            brackets = 2 if text.startswith("[[", at) else 1
            key_start = _after(_SPACES, text, at + brackets)
            key_end = _after(_KEY, text, key_start)
            table = _keys(text[key_start:key_end])
            at = _after(_REST_OF_LINE, text, text.index("]", key_end) + brackets)
            yield Statement(start, at, table, table, None)
        else:
            statement = _assignment(text, at, table)
            at = _after(_REST_OF_LINE, text, statement.end)
            yield Statement(start, at, table, statement.keys, statement.value)


def _members(text: str, statement: Statement) -> Iterator[Statement]:
    """Yield the members of the inline table that is a statement's value."""
    start, end = statement.value or (0, 0)
    at = start + 1
    while (at := _after(_SPACES, text, at)) < end - 1:
        member = _assignment(text, at, statement.keys)
        yield member
        at = _after(_SPACES, text, member.end) + 1


def _assignment(text: str, at: int, table: tuple[str, ...]) -> Statement:
    key_end = _after(_KEY, text, at)
    start = _after(_SPACES, text, text.index("=", key_end) + 1)
    end = _value_end(text, start)
    return Statement(at, end, table, (*table, *_keys(text[at:key_end])), (start, end))


def _value_end(text: str, at: int) -> int:
    if text[at] not in "[{":
        if match := _STRING.match(text, at):
            return match.end()
        return at + len(text[at : _after(_PLAIN_VALUE, text, at)].rstrip())
    depth = 0
    while True:
        at = _after(_BLANK, text, at)
        if match := _STRING.match(text, at):
            at = match.end()
            continue
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(text[at], 0)
        at += 1
        if not depth:
            return at


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _keys(dotted: str) -> tuple[str, ...]:
    keys: list[str] = []
    value: Any = tomllib.loads(f"{dotted} = 0")
    while isinstance(value, dict):
        [(key, value)] = value.items()
        keys.append(key)
    return tuple(keys)


def _cuts(statements: Sequence[Statement]) -> list[Edit]:
    return [Edit(statement.start, statement.end, "") for statement in statements]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _dumped(name)


def _dumped(value: Any) -> str:
    if isinstance(value, dict):
        members = ", ".join(f"{_key(name)} = {_dumped(item)}" for name, item in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_dumped, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _unreadable(text: str, message: str) -> Unreadable:
    match = _POSITION.fullmatch(message)
    if match is None:
        return Unreadable(text, len(text), message.removesuffix(" (at end of document)"))
    lines = text.removeprefix("\ufeff").split("\n")
    line, column = int(match[2]), int(match[3])
    offset = sum(len(earlier) + 1 for earlier in lines[: line - 1]) + column - 1
    return Unreadable(text, offset + text.startswith("\ufeff"), match[1])
