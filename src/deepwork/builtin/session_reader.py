"""Reads sessions of the store `json` in the thread that asks."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from deepwork.api import CorruptSession, Folder, Session, SessionStatus, SessionSummary, StateFolder, StorageError
from deepwork.builtin.session_files import (
    MAX_LISTED,
    MAX_LISTED_BYTES,
    MAX_SESSION,
    SessionCache,
    Stamp,
    file_name,
    ids_of,
    is_id,
    read_for_listing,
    read_session,
    reopened_stamp,
    stamp_of,
    stamp_or_none,
)

# Longer than any clock of a file system takes from one time to the next.
_TICK_NS = 2_500_000_000


class FileReader:
    """Reads the files of sessions, and remembers those that it need not read again. For any thread."""

    def __init__(self, state: StateFolder, cache: SessionCache) -> None:
        self._state = state
        self._cache = cache
        self._active: dict[str, tuple[Stamp, SessionSummary]] = {}
        self._over: set[str] = set()
        self._reopened: Stamp | None = None
        self._seen_stamps: Mapping[str, Hashable] = {}
        self._seen_mtime: int | None = None

    def load(self, session_id: str) -> Session | None:
        """Read a session; see `StateStore.load`."""
        if not is_id(session_id):
            return None
        try:
            with self._state.open() as folder:
                stamp = stamp_of(folder, session_id)
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

    def find(self, status: SessionStatus | None, before: str | None, limit: int) -> list[SessionSummary]:
        """List sessions; see `StateStore.find`."""
        summaries: list[SessionSummary] = []
        try:
            with suppress(FileNotFoundError), self._state.open() as folder:
                found = self._active_ones(folder) if status is SessionStatus.ACTIVE else summaries_in(folder)
                summaries = [
                    summary
                    for summary in found
                    if (status is None or summary.status == status) and (before is None or summary.updated_at < before)
                ]
        except OSError as error:
            raise unlisted(error) from error
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def stamps(self) -> Mapping[str, Hashable]:
        """Give what differs after every change of a session; see `StateStore.stamps`."""
        try:
            with self._state.open() as folder:
                status, now = os.fstat(folder.descriptor), time.time_ns()
                if status.st_mtime_ns != self._seen_mtime:
                    self._seen_stamps = {
                        session_id: stamp
                        for session_id in ids_of(folder.names())
                        if (stamp := stamp_or_none(folder, session_id))
                    }
                    # In the same tick of the clock another file could still come.
                    is_old = abs(now - status.st_mtime_ns) > _TICK_NS
                    self._seen_mtime = status.st_mtime_ns if is_old else None
                return self._seen_stamps
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise unlisted(error) from error

    def _active_ones(self, folder: Folder) -> Iterator[SessionSummary]:
        """Give the active sessions, and remember which are over: most are, and only a person reopens one."""
        reopened = reopened_stamp(folder)
        if reopened != self._reopened:
            self._over, self._reopened = set(), reopened
        over = self._over  # of this stamp, whatever other threads find meanwhile
        names = set(os.listdir(folder.descriptor)) - over
        active: dict[str, tuple[Stamp, SessionSummary]] = {}
        for session_id in ids_of(sorted(names))[:MAX_LISTED]:
            with suppress(CorruptSession, OSError):
                stamp = stamp_of(folder, session_id)
                known_stamp, summary = self._active.get(session_id, (None, None))
                if summary is None or known_stamp != stamp:
                    summary, _ = read_for_listing(folder, session_id, limit=MAX_SESSION)
                    if summary is None:
                        continue
                if not summary.is_active:
                    over.add(file_name(session_id))
                    continue
                active[session_id] = stamp, summary
                yield summary
        self._active = active

    def _summary(self, folder: Folder, session_id: str) -> SessionSummary:
        cached = self._cache.get(session_id, stamp_of(folder, session_id))
        summary = cached.summary() if cached else read_for_listing(folder, session_id, limit=MAX_SESSION)[0]
        if summary is None:
            raise FileNotFoundError(file_name(session_id))
        return summary


def summaries_in(folder: Folder) -> Iterable[SessionSummary]:
    """List the sessions in a folder by reading their files; those that cannot be read are left out."""
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
