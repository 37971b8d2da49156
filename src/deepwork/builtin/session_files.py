"""The files of the store `json`: `session_<id>.json` in an open folder, each readable by a person."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from pydantic import BaseModel, ValidationError

from deepwork.api import (
    MAX_HEAD,
    SCHEMA_VERSION,
    CorruptSession,
    Folder,
    Session,
    SessionStatus,
    SessionSummary,
    read_head,
    visible,
)

# What tells one content of a file from the next: every save makes a new file.
Stamp = tuple[int, int, int, int]

DAMAGED = ".corrupt"
MAX_SESSION = 32 * 1024 * 1024
MAX_REASON = 200
# A listing looks at so many files, and reads so many bytes of those that it has to read whole.
MAX_LISTED = 10_000
MAX_LISTED_BYTES = 64 * 1024 * 1024

# A folder, a pipe, or a file that is too large.
_NO_FILE = {errno.EFBIG, errno.EINVAL, errno.EISDIR}

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_FILE = re.compile(rf"session_({_ID.pattern})\.json")
_DAMAGED_FILE = re.compile(rf"session_{_ID.pattern}\.json\.(\w{{1,32}}){re.escape(DAMAGED)}")
_LOCKS = 16
_REOPENED = "sessions.reopened"
_FILE_END = b"\n}\n"


class _Head(BaseModel):
    """What is read first: of a file of a newer release the rest may make no sense."""

    schema_version: int = 0
    revision: Any = 0
    session_id: Any = None
    status: Any = None


class SessionCache:
    """The sessions that were read or written last. Each counts for as long as its file has the same stamp."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._sessions: dict[str, tuple[Stamp, Session]] = {}
        self._lock = Lock()

    def get(self, session_id: str, stamp: Stamp) -> Session | None:
        """Give a session if its file has this stamp."""
        cached_stamp, session = self._sessions.get(session_id, (None, None))
        return session if cached_stamp == stamp else None

    def put(self, session_id: str, stamp: Stamp, session: Session) -> None:
        """Remember a session; the one that was remembered longest ago makes room."""
        with self._lock:
            self._sessions.pop(session_id, None)
            self._sessions[session_id] = stamp, session
            if len(self._sessions) > self._size:
                del self._sessions[next(iter(self._sessions))]


def is_id(session_id: str) -> bool:
    """Say whether an id can stand in the name of a file."""
    return _ID.fullmatch(session_id) is not None


def file_name(session_id: str) -> str:
    """Name the file of a session."""
    return f"session_{session_id}.json"


def ids_of(names: Iterable[str]) -> list[str]:
    """Give the ids of the sessions to which files belong, by their names."""
    return [match[1] for match in map(_FILE.fullmatch, names) if match]


def damaged_files(names: Iterable[str]) -> list[str]:
    """Choose the files that were set aside, in the order of their times; other names could say anything."""
    matches = [match for match in map(_DAMAGED_FILE.fullmatch, names) if match]
    return [match[0] for match in sorted(matches, key=lambda match: match[1])]


def stamp_of(folder: Folder, session_id: str) -> Stamp:
    """Read the stamp of a session's file."""
    return _stamp(folder, file_name(session_id))


def stamp_or_none(folder: Folder, session_id: str) -> Stamp | None:
    """Read the stamp of a session's file; None if it has none."""
    return _stamp_or_none(folder, file_name(session_id))


def note_reopening(folder: Folder) -> None:
    """Tell every server that a session which is over will be active: they remember which are over.

    Nothing of this has to survive a power cut, as no server does.
    """
    folder.replace(_REOPENED, b"", synced=False)


def reopened_stamp(folder: Folder) -> Stamp | None:
    """Give what is another one whenever a session is reopened."""
    return _stamp_or_none(folder, _REOPENED)


def _stamp(folder: Folder, name: str) -> Stamp:
    status = folder.status(name)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _stamp_or_none(folder: Folder, name: str) -> Stamp | None:
    try:
        return _stamp(folder, name)
    except FileNotFoundError:
        return None


def lock_name(session_id: str) -> str:
    """Spread sessions over a few lock files, the same in every process."""
    return f"sessions.{sum(session_id.encode()) % _LOCKS}.lock"


def read_session(folder: Folder, session_id: str) -> Session | None:
    """Read a session; None if it has no file. A damaged file is set aside, never taken for a missing one.

    Raises:
        CorruptSession: The file cannot be read.
    """
    content = _read(folder, session_id)
    if content is None:
        return None
    _read_versions(folder, session_id, content)
    try:
        session = Session.model_validate_json(content, extra="allow")
    except ValueError as error:
        raise _set_aside(folder, session_id, error) from None
    for contradiction in session.contradictions():
        raise _set_aside(folder, session_id, ValueError(contradiction))
    return session


def read_for_listing(folder: Folder, session_id: str, *, limit: int) -> tuple[SessionSummary | None, int]:
    """Read as much of a session as a listing needs: the head, if the file is whole and of this release.

    Otherwise the whole file is read, unless it has more than `limit` bytes.

    Returns:
        What a listing shows, and how many bytes were read because the head was not enough.
    """
    with folder.open_file(file_name(session_id)) as file:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size
        head = read_head(os.read(descriptor, MAX_HEAD))
        is_whole = os.pread(descriptor, len(_FILE_END), max(0, size - len(_FILE_END))) == _FILE_END
    if head and is_whole:
        with suppress(ValueError):
            return SessionSummary.model_validate(vars(head)), 0
    if limit < size <= MAX_SESSION:
        return None, 0
    session = read_session(folder, session_id)
    return session.summary() if session else None, size


def read_revision(folder: Folder, session_id: str) -> tuple[int, bool] | None:
    """Read the revision of a session's file, and whether the session is active; None if it has none.

    Raises:
        CorruptSession: The file cannot be read.
    """
    content = _read(folder, session_id)
    if content is None:
        return None
    head = _read_versions(folder, session_id, content)
    return head.revision, head.status == SessionStatus.ACTIVE


def _read(folder: Folder, session_id: str) -> bytes | None:
    """Read the file of a session; what cannot be one, such as a folder or gigabytes of zeros, is set aside."""
    try:
        return folder.read(file_name(session_id), limit=MAX_SESSION)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise _set_aside(folder, session_id, error) from None
        raise


def _read_versions(folder: Folder, session_id: str, content: bytes) -> _Head:
    """Read what says whether the rest can be read; a file that is not JSON, or another session's, is set aside."""
    try:
        head = _Head.model_validate_json(content)
    except ValueError as error:
        raise _set_aside(folder, session_id, error) from None
    if head.schema_version > SCHEMA_VERSION:
        raise CorruptSession(
            f"Session {session_id!r} was written by a newer release (schema_version {head.schema_version}; this one "
            f"knows {SCHEMA_VERSION}); it was left as it is",
            hint="Install that release to go on with this session.",
        )
    if head.session_id != session_id:
        raise _set_aside(folder, session_id, ValueError(f"it is of session {head.session_id!r}"))
    return head


def _set_aside(folder: Folder, session_id: str, error: Exception) -> CorruptSession:
    name = file_name(session_id)
    new_name = f"{name}.{datetime.now(UTC):%Y%m%dT%H%M%S}{DAMAGED}"
    with suppress(FileNotFoundError):  # another process has set it aside at the same time
        folder.rename(name, new_name)
    return CorruptSession(
        f"The file of this session is damaged ({_reason(error)}) and was renamed to .deepwork/tmp/{new_name}",
        hint="Look into it for what was done, then start_workflow anew.",
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    text = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return visible(text[:MAX_REASON])
