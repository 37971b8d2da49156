"""Comments on lines as a person writes them into a file, in the grammar of `deepwork inbox review`, or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepwork.errors import ArgumentError

MAX_BYTES = 4 * 1024**2
HELP = """\
# What you write here goes to the agent that waits; an empty file changes nothing. Lines with # are left out.
#
# FILE:LINE[-END] [must|could] TEXT     a comment; the text may go on in the next lines
# ```suggestion                         what is to replace its lines; nothing removes them
# new text
# ```
#
# Text before the first comment is about the whole. Files:
"""
_HEAD = re.compile(r"(?P<file>\S.*?):(?P<line>\d{1,9})(?:-(?P<end>\d{1,9}))?(?:\s+(?P<rest>.*))?")
_MUST = re.compile(r"(must|could)\b[:,]?\s*(.*)", re.DOTALL)
_FENCE = re.compile(r"```\s*suggestion\s*")


@dataclass(frozen=True)
class Said:
    """What a person has written: of the whole, and of lines."""

    text: str = ""
    comments: Sequence[Mapping[str, Any]] = ()


def read_file(file: Path) -> Said:
    """Read a file of comments: a JSON list, or text in the grammar.

    Raises:
        ArgumentError: It cannot be read, or a part of it is neither.
    """
    try:
        content = file.read_bytes()
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{str(file)!r} cannot be read as UTF-8 text: {error}") from None
    if len(content) > MAX_BYTES:
        raise ArgumentError(f"{str(file)!r} has {len(content):,} bytes; the limit is {MAX_BYTES:,}")
    if not text.lstrip().startswith("["):
        return read_text(text)
    try:
        return Said("", json.loads(text))
    except ValueError as error:
        raise ArgumentError(f"{str(file)!r} is no JSON: {error}") from None


def read_text(text: str, files: Collection[str] | None = None) -> Said:
    """Read comments in the grammar.

    Args:
        text: The text.
        files: Those that may be commented; what looks like a comment on another is text. None takes any.

    Raises:
        ArgumentError: A suggestion belongs to no comment, or does not end.
    """
    whole: list[str] = []
    comments: list[dict[str, Any]] = []
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if line.startswith("#"):
            continue
        if _FENCE.fullmatch(line):
            if not comments:
                raise ArgumentError(f"line {number}: the suggestion belongs to no comment")
            comments[-1]["suggestion"] = "".join(f"{line}\n" for line in _suggested(lines, number))
        elif (head := _HEAD.fullmatch(line)) and (files is None or head["file"] in files):
            comments.append(_comment(head))
        elif comments:
            comments[-1]["text"] += f"\n{line}"
        else:
            whole.append(line)
    for comment in comments:
        comment["text"] = comment["text"].strip()
    return Said("\n".join(whole).strip(), comments)


def _suggested(lines: Iterator[tuple[int, str]], number: int) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == "```":
            return
        yield line
    raise ArgumentError(f"line {number}: the suggestion does not end with ```")


def _comment(head: re.Match[str]) -> dict[str, Any]:
    rest = (head["rest"] or "").strip()
    word = _MUST.fullmatch(rest)
    end = {"end_line": int(head["end"])} if head["end"] else {}
    return {
        "file": head["file"],
        "line": int(head["line"]),
        **end,
        "text": word[2] if word else rest,
        "must": bool(word and word[1] == "must"),
    }
