"""The files of the store `json`, and how they are read: `session_<id>.json` in an open folder, readable by a person."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from deepwork.api import Folder, Session, SessionSummary
from deepwork.builtin.json_store.names import DAMAGED, FILE_END, MAX_LISTED, MAX_SESSION, file_name, ids_of, is_id
from deepwork.errors import CorruptSession, StorageError
from deepwork.models.sessions import SCHEMA_VERSION
from deepwork.models.standing import MAX_HEAD, read_head
from deepwork.paths.state_folder import StateFolder
from deepwork.ports.state_store import SessionCache
from deepwork.text import visible

# What tells one content of a file from the next: every save makes a new file.
Stamp = tuple[int, int, int, int]

MAX_REASON = 200
# A listing reads so many bytes of the files that have to be read whole.
MAX_LISTED_BYTES = 64 * 1024 * 1024

# A folder, a pipe, or a file that is too large.
_NO_FILE = {errno.EFBIG, errno.EINVAL, errno.EISDIR}

# Longer than any clock of a file system takes from one time to the next.
_TICK_NS = 2_500_000_000


class _Head(BaseModel):
    """What is read first: of a file of a newer release the rest may make no sense."""

    schema_version: int = 0
    revision: Any = 0
    session_id: Any = None


class FileReader:
    """Reads the files of sessions, and remembers the unchanged ones. For any thread."""

    def __init__(self, state: StateFolder, cache: SessionCache) -> None:
        self._state = state
        self._cache = cache
        self._seen_stamps: Mapping[str, Hashable] = {}
        self._seen_mtime: int | None = None

    def load(self, session_id: str) -> Session | None:
        """Read a session; see `StateStore.load`."""
        if not is_id(session_id):
            return None
        try:
            with self._state.open() as folder:
                stamp = stamp_of(folder, file_name(session_id))
                if session := self._cache.get(session_id, stamp):
                    return session
                session = read_session(folder, session_id)
                if session:
                    self._cache.put(session_id, stamp, session)
                return session
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error) from error

    def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read the summaries of some sessions; see `StateStore.peek`."""
        summaries: list[SessionSummary | CorruptSession] = []
        try:
            with self._state.open() as folder:
                for session_id in filter(is_id, session_ids):
                    try:
                        summaries.append(self._summary(folder, session_id))
                    except CorruptSession as error:
                        summaries.append(error)
                    except FileNotFoundError:
                        continue
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable(error) from error
        return summaries

    def stamps(self) -> Mapping[str, Hashable]:
        """Return stamps that differ after every change of a session; see `StateStore.stamps`."""
        try:
            with self._state.open() as folder:
                status, now = os.fstat(folder.descriptor), time.time_ns()
                if status.st_mtime_ns != self._seen_mtime:
                    self._seen_stamps = {
                        session_id: stamp
                        for session_id in ids_of(folder.names())
                        if (stamp := stamp_or_none(folder, file_name(session_id)))
                    }
                    # In the same tick of the clock another file could still come.
                    is_old = abs(now - status.st_mtime_ns) > _TICK_NS
                    self._seen_mtime = status.st_mtime_ns if is_old else None
                return self._seen_stamps
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise unlisted(error) from error

    def _summary(self, folder: Folder, session_id: str) -> SessionSummary:
        cached = self._cache.get(session_id, stamp_of(folder, file_name(session_id)))
        summary = cached.summary() if cached else read_for_listing(folder, session_id, limit=MAX_SESSION)[0]
        if summary is None:
            raise FileNotFoundError(file_name(session_id))
        return summary


def stamp_of(folder: Folder, name: str) -> Stamp:
    """Return the stamp of a file."""
    status = folder.status(name)
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def stamp_or_none(folder: Folder, name: str) -> Stamp | None:
    """Return the stamp of a file; None if it does not exist."""
    try:
        return stamp_of(folder, name)
    except FileNotFoundError:
        return None


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
        is_whole = os.pread(descriptor, len(FILE_END), max(0, size - len(FILE_END))) == FILE_END
    if head and is_whole:
        with suppress(ValueError):
            return SessionSummary.model_validate(vars(head)), 0
    if limit < size <= MAX_SESSION:
        return None, 0
    session = read_session(folder, session_id)
    return session.summary() if session else None, size


def read_revision(folder: Folder, session_id: str) -> Any:
    """Read the revision of a session's file; None if it has none.

    Raises:
        CorruptSession: The file cannot be read.
    """
    content = _read(folder, session_id)
    return None if content is None else _read_versions(folder, session_id, content).revision


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
        hint="Look into it for finished work, then start_workflow anew.",
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    text = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return visible(text[:MAX_REASON])


def summaries_in(folder: Folder) -> Iterable[SessionSummary]:
    """List the sessions in a folder by reading their files; unreadable ones are left out."""
    remaining_bytes = MAX_LISTED_BYTES
    for session_id in ids_of(folder.names())[:MAX_LISTED]:
        with suppress(CorruptSession, OSError):
            summary, read_bytes = read_for_listing(folder, session_id, limit=remaining_bytes)
            remaining_bytes -= read_bytes
            if summary:
                yield summary


def unlisted(error: OSError) -> StorageError:
    """Make the error of a folder that cannot be listed."""
    return StorageError(f"The sessions could not be listed: {error.strerror or error}")


def _unreadable(error: OSError) -> StorageError:
    return StorageError(f"The session could not be read: {error.strerror or error}; nothing was changed")
