"""What the files of sessions are called, and how large and how many they may be. It imports nothing large."""

from __future__ import annotations

import re
from collections.abc import Iterable

DAMAGED = ".corrupt"
MAX_SESSION = 32 * 1024 * 1024
# A listing looks at so many files.
MAX_LISTED = 10_000
# A file that does not end so was not written whole.
FILE_END = b"\n}\n"
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_FILE = re.compile(rf"session_({_ID.pattern})\.json")
_DAMAGED_FILE = re.compile(rf"session_{_ID.pattern}\.json\.(\w{{1,32}}){re.escape(DAMAGED)}")
_LOCKS = 16


def is_id(session_id: str) -> bool:
    """True if an id can be part of a file name."""
    return _ID.fullmatch(session_id) is not None


def file_name(session_id: str) -> str:
    """Name the file of a session."""
    return f"session_{session_id}.json"


def ids_of(names: Iterable[str]) -> list[str]:
    """Return the ids of the sessions to which files belong, by their names."""
    return [match[1] for match in map(_FILE.fullmatch, names) if match]


def damaged_files(names: Iterable[str]) -> list[str]:
    """Choose the files that were set aside, in the order of their times; other names could say anything."""
    matches = [match for match in map(_DAMAGED_FILE.fullmatch, names) if match]
    return [match[0] for match in sorted(matches, key=lambda match: match[1])]


def lock_name(session_id: str) -> str:
    """Spread sessions over a few lock files, the same in every process."""
    return f"sessions.{sum(session_id.encode()) % _LOCKS}.lock"
