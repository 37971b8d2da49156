"""Texts of client files: replacements by offset, line ends, indentation, and where something is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from deepwork.errors import ConfigError

_LINE_END = re.compile(r"\r\n|\n|\r")


class Edit(NamedTuple):
    """What replaces the characters from `start` to `end`."""

    start: int
    end: int
    text: str


class Unreadable(ConfigError):
    """A text that cannot be parsed, or whose parts are not what an entry needs, with its line and column."""

    def __init__(self, text: str, offset: int, problem: str) -> None:
        lines = _LINE_END.split(text[:offset])
        super().__init__(f"line {len(lines)}, column {len(lines[-1]) + 1}: {problem}")


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap; of two at the same place the first comes first."""
    parts, at = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def newline_of(text: str) -> str:
    """Return the line end that a text uses."""
    match = _LINE_END.search(text)
    return match[0] if match else "\n"


def has_line_end(text: str) -> bool:
    """True if a text goes over more than one line."""
    return _LINE_END.search(text) is not None


def line_start(text: str, offset: int) -> int:
    """Return the offset at which the line of an offset begins."""
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def line_indent(text: str, offset: int) -> str:
    """Return the spaces and tabs at the beginning of the line of an offset."""
    start = line_start(text, offset)
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip(" \t"))]
