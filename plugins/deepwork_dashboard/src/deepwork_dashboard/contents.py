"""What a page shows of the files of an attempt: their lines, what differs from before, and how they read."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deepwork.sessions.lines import lines_of
from deepwork_dashboard.answers import Mapped
from deepwork_dashboard.differences import Lines, changes
from deepwork_dashboard.rendered import MAX_RENDERED, rendered

# So much text of all files together is in one answer, and so many lines of one file; what is more is a note.
MAX_TEXT = 4 * 1024**2
MAX_LINES = 20_000
MAX_IMAGE = 3 * 1024**2

# By their first bytes, not by their names: SVG is not among them, for it is a document.
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@dataclass(frozen=True)
class FileOfAttempt:
    """A file of an attempt, and the same in what it is compared with.

    Attributes:
        known: What is known of it.
        content: What it holds; None if it is not there, not kept here, or not read.
        before: What it held; likewise.
        was_there: Whether it was there before; None if it is compared with nothing.
        is_there: Whether this attempt has it.
    """

    known: Mapped
    content: bytes | None
    before: bytes | None = None
    was_there: bool | None = None
    is_there: bool = True


def shown(files: Iterable[FileOfAttempt]) -> list[Mapped]:
    """Show files, as long as there is room."""
    room = _Room()
    return [_shown(file, room) for file in files]


class _Room:
    """What is left of what one answer may hold."""

    def __init__(self) -> None:
        self.text = MAX_TEXT
        self.rendered = MAX_RENDERED


def _shown(file: FileOfAttempt, room: _Room) -> Mapped:
    known, state = file.known, _state(file)
    answer = {**known, "state": state, "lines": None, "changes": None, "blocks": None, "truncated": False}
    if known["closed"] or (file.content is None and file.is_there):
        return answer
    if known["kind"] == "image":
        return {**answer, "image": _image(file.content), "old_image": _image(file.before)}
    content, before = file.content or b"", file.before or b""
    if not (_is_text(content) and _is_text(before)):
        return {**answer, "kind": "binary"}
    if len(content) + len(before) > room.text:
        return {**answer, "note": "large"}
    room.text -= len(content) + len(before)
    new, old = _lines(file.content), _lines(file.before)
    answer |= {"lines": _texts(new[:MAX_LINES]), "truncated": len(new) > MAX_LINES}
    if file.before is not None:
        pairs = changes(old[:MAX_LINES], new[:MAX_LINES])
        answer["changes"] = [[change.old_line, _texts(change.removed), change.line, change.added] for change in pairs]
    if 0 < len(content) <= room.rendered:
        answer["blocks"] = rendered(known["kind"], known["path"], content.decode())
        room.rendered -= len(content) if answer["blocks"] else 0
    return answer


def _state(file: FileOfAttempt) -> str | None:
    if file.was_there is None:
        return None
    if not file.is_there:
        return "removed"
    if not file.was_there:
        return "added"
    return "same" if file.known["same"] else "changed"


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _lines(content: bytes | None) -> Lines:
    """Divide a text as comments count its lines; a file that is not there has none."""
    return () if content is None else lines_of(content)


def _texts(lines: Lines) -> list[str]:
    return [line.decode() for line in lines]


def _image(content: bytes | None) -> Any:
    if content is None or len(content) > MAX_IMAGE:
        return None
    kind = next((kind for start, kind in _IMAGES.items() if content.startswith(start)), None)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        kind = "image/webp"
    return kind and f"data:{kind};base64,{base64.b64encode(content).decode()}"
