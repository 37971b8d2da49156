"""Findings of reviewers: kept where they point into the judged files; the verdict stands without the others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from urllib.parse import unquote, urlsplit

from deepwork.models.reviews import Finding, FindingLevel
from deepwork.text import shorten, visible_lines

MAX_FINDINGS = 200
MAX_MESSAGE = 4000
MAX_LINE = 10**9
_CHUNK = 256 * 1024

FINDINGS_SCHEMA: dict[str, Any] = {
    "type": "array",
    "maxItems": MAX_FINDINGS,
    "items": {
        "type": "object",
        "properties": {
            "file": {"type": "string", "description": "The file as it is listed."},
            "line": {"type": "integer", "minimum": 1},
            "end_line": {"type": ["integer", "null"], "minimum": 1},
            "criterion": {"type": "string", "description": "The criterion that it concerns."},
            "message": {"type": "string"},
            "level": {"type": "string", "enum": [*get_args(FindingLevel)]},
        },
        "required": ["file", "line", "criterion", "message", "level"],
        "additionalProperties": False,
    },
}


def read_findings(items: object) -> Iterator[Finding]:
    """Yield what of an answer has the shape of a finding."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and _has_shape(item):
            yield Finding(
                file=item["file"],
                line=item["line"],
                end_line=item.get("end_line"),
                criterion=item.get("criterion"),
                message=item["message"],
                level=item["level"],
            )


def _has_shape(item: Mapping[str, Any]) -> bool:
    end, criterion = item.get("end_line"), item.get("criterion")
    return (
        isinstance(item.get("file"), str)
        and _is_line(item.get("line"))
        and (end is None or _is_line(end))
        and isinstance(criterion, str | None)
        and isinstance(item.get("message"), str)
        and item.get("level") in get_args(FindingLevel)
    )


def _is_line(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_LINE


@dataclass(frozen=True)
class JudgedFiles:
    """The files to which the findings of one verdict may point.

    Attributes:
        paths: The path that was reported, by the name under which the reviewer knows the file.
        folders: Where the files may lie for the reviewer, who may name them absolutely.
        contents: Where they are read.
        criteria: The criteria of the review.
    """

    paths: Mapping[str, str]
    folders: Sequence[Path]
    contents: Path
    criteria: Iterable[str]

    def pointed(self, findings: object) -> tuple[Finding, ...]:
        """Return the findings that point to lines of these files, as they can be stored; at most 200. Reads files."""
        criteria, lengths, kept = {*self.criteria}, dict[str, int](), list[Finding]()
        for finding in findings if isinstance(findings, tuple | list) else ():
            if len(kept) == MAX_FINDINGS:
                break
            if not isinstance(finding, Finding) or finding.criterion not in (None, *criteria):
                continue
            name = self._name(finding.file)
            if name is None:
                continue
            if name not in lengths:
                lengths[name] = line_count(self.contents / name)
            last = finding.line if finding.end_line is None else finding.end_line
            if 1 <= finding.line <= last <= lengths[name]:
                message = shorten(visible_lines(decoded(finding.message)), MAX_MESSAGE)
                kept.append(finding.model_copy(update={"file": self.paths[name], "message": message}))
        return tuple(kept)

    def _name(self, file: str) -> str | None:
        """Return the name of a judged file, however the reviewer names it; None for another file."""
        path = unquote(urlsplit(file).path) if file.startswith("file:") else file
        name = os.path.normpath(path)
        for folder in self.folders if os.path.isabs(name) else ():
            if name.startswith(f"{folder}{os.sep}"):
                name = os.path.relpath(name, folder)
                break
        if name in self.paths:
            return name
        return next((known for known, reported in self.paths.items() if reported == path), None)


def line_count(file: Path) -> int:
    """Return the number of lines of a file; an empty file has one, as editors show it, and a missing one none."""
    count, last = 0, b"\n"
    try:
        with open(file, "rb") as opened:
            while chunk := opened.read(_CHUNK):
                count += chunk.count(b"\n")
                last = chunk[-1:]
    except OSError:
        return 0
    return max(1, count + (last != b"\n"))


def decoded(text: str) -> str:
    """Return a text without lone surrogates: JSON can write one, but no store can keep it."""
    return text.encode("utf-8", "replace").decode()
