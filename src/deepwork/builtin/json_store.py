"""Sessions as files: `.deepwork/tmp/session_<id>.json`, readable by a person."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

from anyio import to_thread

from deepwork import hookimpl
from deepwork.api import (
    CorruptSession,
    Folder,
    Session,
    SessionStatus,
    SessionSummary,
    StaleSession,
    StateStore,
    StateStoreSpec,
    StorageError,
    Workspace,
)
from deepwork.builtin.session_files import (
    MAX_LISTED,
    MAX_LISTED_BYTES,
    MAX_SESSION,
    SessionCache,
    Stamp,
    damaged_files,
    file_name,
    is_id,
    read_for_listing,
    read_revision,
    read_session,
    stamp_of,
    stored_ids,
)

_LOCKS = 16
_CACHED_SESSIONS = 32
_ARCHIVE = "archive"
# Longer than any clock of a file system takes from one time to the next.
_TICK_NS = 2_500_000_000


class JsonStore(StateStore):
    """One file is one session and one transaction: state, recorded replies and history together.

    A save compares the revision under a lock of the operating system and acknowledges only what would
    survive a power cut. Several servers may work in one folder.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._cache = SessionCache(_CACHED_SESSIONS)
        self._seen_stamps: Mapping[str, Hashable] = {}
        self._seen_mtime: int | None = None

    async def load(self, session_id: str) -> Session | None:
        """Read the file of a session."""
        return await to_thread.run_sync(self._load, session_id)

    async def save(self, session: Session, *, expected: int | None) -> int:
        """Replace the file of a session. A call that is cancelled meanwhile still saves."""
        return await to_thread.run_sync(self._save, session, expected)

    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        """List sessions by reading their files; those that cannot be read are left out."""
        return await to_thread.run_sync(self._find, status, before, limit)

    async def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read the beginnings of the files whose sessions are not cached."""
        return await to_thread.run_sync(self._peek, session_ids)

    async def damaged(self) -> list[str]:
        """Name the files that could not be read and were set aside."""
        names = damaged_files(await to_thread.run_sync(self._names))
        return [self._workspace.shown(self._workspace.state_dir / name) for name in names]

    async def stamps(self) -> Mapping[str, Hashable]:
        """Look at the times of the files, and only if the folder has changed: every save puts a new file into it."""
        return await to_thread.run_sync(self._stamps)

    async def archive(self, session_id: str) -> None:
        """Move the files of a session to the folder `archive`."""
        await to_thread.run_sync(self._archive, session_id)

    async def archived(self) -> list[SessionSummary]:
        """List the sessions in the folder `archive`."""
        return await to_thread.run_sync(self._archived)

    async def __aenter__(self) -> Self:
        """Remove what writes that were cut off have left."""
        await to_thread.run_sync(self._remove_leftovers)
        return self

    def _open(self) -> Folder:
        return Folder.open(self._workspace.state_dir, inside=self._workspace.root)

    def _load(self, session_id: str) -> Session | None:
        if not is_id(session_id):
            return None
        try:
            with self._open() as folder:
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

    def _save(self, session: Session, expected: int | None) -> int:
        session_id = session.session_id
        if not is_id(session_id):
            raise StorageError(f"Session id {session_id!r} cannot stand in a file name; nothing was changed")
        revision = (expected or 0) + 1
        stored = session.model_copy(update={"revision": revision})
        content = stored.model_dump_json(indent=2).encode() + b"\n"
        if len(content) > MAX_SESSION:
            raise StorageError(
                f"Session {session_id!r} would have {len(content):,} bytes; the limit is {MAX_SESSION:,}; nothing was "
                "changed",
                hint="Shorten the instructions of its job, or abort_workflow and start again.",
            )
        try:
            self._workspace.prepare_state_dir()
            with self._open() as folder, folder.locked(_lock_name(session_id), subject="the session folder"):
                before = _stamp_or_none(folder, session_id)
                is_other = self._revision(folder, session_id, before) != expected
                if is_other or (expected is None and _is_archived(folder, session_id)):
                    raise StaleSession(f"Session {session_id!r} was changed meanwhile")
                folder.replace(file_name(session_id), content)
                after = stamp_of(folder, session_id)
                if after != before:  # the cache must not answer with what the disk does not have
                    self._cache.put(session_id, after, stored)
        except OSError as error:
            raise StorageError(
                f"The session could not be saved: {error.strerror or error}; nothing was changed",
                hint="Fix the cause (space, quota, permissions), then call again.",
            ) from error
        return revision

    def _revision(self, folder: Folder, session_id: str, stamp: Stamp | None) -> int | None:
        if stamp is None:
            return None
        cached = self._cache.get(session_id, stamp)
        return cached.revision if cached else read_revision(folder, session_id)

    def _find(self, status: SessionStatus | None, before: str | None, limit: int) -> list[SessionSummary]:
        try:
            summaries = [
                summary
                for summary in self._summaries()
                if (status is None or summary.status == status) and (before is None or summary.updated_at < before)
            ]
        except OSError as error:
            raise _unlisted(error) from error
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def _summaries(self) -> Iterator[SessionSummary]:
        with suppress(FileNotFoundError), self._open() as folder:
            yield from _summaries_in(folder)

    def _peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        summaries: list[SessionSummary | CorruptSession] = []
        try:
            with self._open() as folder:
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

    def _summary(self, folder: Folder, session_id: str) -> SessionSummary:
        cached = self._cache.get(session_id, stamp_of(folder, session_id))
        session = cached or read_for_listing(folder, session_id, limit=MAX_SESSION)[0]
        if session is None:
            raise FileNotFoundError(file_name(session_id))
        return session.summary()

    def _names(self) -> list[str]:
        try:
            with self._open() as folder:
                return folder.names()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unlisted(error) from error

    def _stamps(self) -> Mapping[str, Hashable]:
        try:
            with self._open() as folder:
                status, now = os.fstat(folder.descriptor), time.time_ns()
                if status.st_mtime_ns != self._seen_mtime:
                    self._seen_stamps = {
                        session_id: stamp
                        for session_id in stored_ids(folder)
                        if (stamp := _stamp_or_none(folder, session_id))
                    }
                    # In the same tick of the clock another file could still come.
                    is_old = abs(now - status.st_mtime_ns) > _TICK_NS
                    self._seen_mtime = status.st_mtime_ns if is_old else None
                return self._seen_stamps
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unlisted(error) from error

    def _archive(self, session_id: str) -> None:
        own_file = file_name(session_id)
        beginnings = (own_file, f"quality_review_{session_id}_", f"resume_{session_id}.")
        try:
            with (
                self._open() as folder,
                folder.locked(_lock_name(session_id), subject="the session folder"),
                folder.subfolder(_ARCHIVE) as archive,
            ):
                for name in sorted(folder.names(), key=lambda name: name != own_file):  # the session itself first
                    if name.startswith(beginnings):
                        folder.rename(name, name, into=archive)
                archive.sync()
                folder.sync()
        except OSError as error:
            raise StorageError(f"The session could not be archived: {error.strerror or error}") from error

    def _archived(self) -> list[SessionSummary]:
        try:
            with self._open() as folder:
                if _ARCHIVE not in folder.names():  # opening it would make it
                    return []
                archive = folder.subfolder(_ARCHIVE)
            with archive:
                summaries = [*_summaries_in(archive)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unlisted(error) from error
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)

    def _remove_leftovers(self) -> None:
        with suppress(OSError), self._open() as folder:
            folder.remove_leftovers()


def _summaries_in(folder: Folder) -> Iterator[SessionSummary]:
    remaining_bytes = MAX_LISTED_BYTES
    for session_id in stored_ids(folder)[:MAX_LISTED]:
        with suppress(CorruptSession, OSError):
            session, read_bytes = read_for_listing(folder, session_id, limit=remaining_bytes)
            remaining_bytes -= read_bytes
            if session:
                yield session.summary()


def _stamp_or_none(folder: Folder, session_id: str) -> Stamp | None:
    try:
        return stamp_of(folder, session_id)
    except FileNotFoundError:
        return None


def _is_archived(folder: Folder, session_id: str) -> bool:
    with suppress(FileNotFoundError):
        folder.status(_ARCHIVE)  # opening it would make it
        with folder.subfolder(_ARCHIVE) as archive:
            return _stamp_or_none(archive, session_id) is not None
    return False


def _lock_name(session_id: str) -> str:
    """Spread sessions over a few lock files, the same in every process."""
    return f"sessions.{sum(session_id.encode()) % _LOCKS}.lock"


def _unlisted(error: OSError) -> StorageError:
    return StorageError(f"The sessions could not be listed: {error.strerror or error}")


def _unreadable(error: OSError) -> StorageError:
    return StorageError(f"The session could not be read: {error.strerror or error}; nothing was changed")


@hookimpl
def deepwork_state_stores() -> Iterator[StateStoreSpec]:
    """The store `json`, which is the default."""
    yield StateStoreSpec(name="json", open=JsonStore)
