"""Sessions as files: `.deepwork/tmp/session_<id>.json`, readable by a person."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Generic, Self, TypeVar

from anyio import to_thread
from pydantic import BaseModel, ValidationError

from deepwork import hookimpl
from deepwork.api import (
    SCHEMA_VERSION,
    CorruptSession,
    Session,
    SessionStatus,
    SessionSummary,
    StaleSession,
    StateStore,
    StateStoreSpec,
    StorageError,
    Workspace,
    is_leftover,
    locked,
    open_folder,
    read_in,
    replace_in,
)

Stamp = tuple[int, int, int, int]
KeptT = TypeVar("KeptT")

_FILE = re.compile(r"session_([0-9A-Za-z_-]{1,64})\.json")
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_LOCKS = 16
_HEAD_BYTES = 4096
_AFTER_HEAD = b',\n  "instance_id":'
_END = b"\n}\n"
_KEPT_BESIDE = 3600.0
_KEPT_SESSIONS = 32
_KEPT_SUMMARIES = 1000
_ASIDE = ".corrupt"
_ARCHIVE = "archive"


class _Head(BaseModel):
    """What is read first: of a file of a newer release the rest may make no sense."""

    schema_version: int = 0
    revision: Any = 0
    session_id: Any = None


class _Kept(Generic[KeptT]):
    """What was read or written last, each with the stamp of its file: it counts as long as the file has that."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: dict[str, tuple[Stamp, KeptT]] = {}
        self._lock = Lock()

    def get(self, session_id: str, stamp: Stamp) -> KeptT | None:
        known, item = self._items.get(session_id, (None, None))
        return item if known == stamp else None

    def put(self, session_id: str, stamp: Stamp, item: KeptT) -> None:
        with self._lock:
            self._items.pop(session_id, None)
            self._items[session_id] = stamp, item
            if len(self._items) > self._size:
                del self._items[next(iter(self._items))]


class JsonStore(StateStore):
    """One file is one session and one transaction: state, recorded replies and history together.

    A save compares the revision under a lock of the operating system and acknowledges only what would
    survive a power cut. Several servers may work in one folder.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._sessions = _Kept[Session](_KEPT_SESSIONS)
        self._summaries = _Kept[SessionSummary](_KEPT_SUMMARIES)

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
        """Read the beginnings of those files that have changed since they were last read."""
        return await to_thread.run_sync(self._peek, session_ids)

    async def damaged(self) -> list[str]:
        """Name the files that could not be read and were set aside."""
        aside = [name for name in await to_thread.run_sync(self._names) if name.endswith(_ASIDE)]
        in_time = sorted(aside, key=lambda name: name.rpartition(".json.")[2])
        return [self._workspace.shown(self._workspace.state_dir / name) for name in in_time]

    async def archive(self, session_id: str) -> None:
        """Move the files of a session to the folder `archive`."""
        await to_thread.run_sync(self._archive, session_id)

    async def __aenter__(self) -> Self:
        """Remove what writes have left that were cut off, once nobody can be writing it any more."""
        await to_thread.run_sync(self._sweep)
        return self

    def _load(self, session_id: str) -> Session | None:
        if not _ID.fullmatch(session_id):
            return None
        try:
            with open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder:
                stamp = _stamp(folder, session_id)
                if kept := self._sessions.get(session_id, stamp):
                    return kept
                session = _read(folder, session_id)
                if session:
                    self._sessions.put(session_id, stamp, session)
                return session
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error) from error

    def _save(self, session: Session, expected: int | None) -> int:
        if not _ID.fullmatch(session.session_id):
            raise StorageError(f"Session id {session.session_id!r} cannot stand in a file name; nothing was changed")
        name = f"session_{session.session_id}.json"
        revision = (expected or 0) + 1
        stored = session.model_copy(update={"revision": revision})
        content = stored.model_dump_json(indent=2).encode() + b"\n"
        try:
            self._workspace.prepare_state_dir()
            with (
                open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder,
                locked(folder, f"sessions.{_slot(session.session_id)}.lock", subject="the session folder"),
            ):
                previous = read_in(folder, name)
                before = None if previous is None else _stamp(folder, session.session_id)
                if self._revision(folder, session.session_id, previous, before) != expected:
                    raise StaleSession(f"Session {session.session_id!r} was changed meanwhile")
                replace_in(folder, name, content, previous=previous)
                after = _stamp(folder, session.session_id)
                if after != before:  # what the disk does not have is not kept either
                    self._sessions.put(session.session_id, after, stored)
        except OSError as error:
            raise StorageError(
                f"The session could not be saved: {error.strerror or error}; nothing was changed",
                hint="Mend the cause (space, quota, permissions), then call again.",
            ) from error
        return revision

    def _revision(self, folder: int, session_id: str, content: bytes | None, stamp: Stamp | None) -> int | None:
        if content is None or stamp is None:
            return None
        kept = self._sessions.get(session_id, stamp)
        return kept.revision if kept else _parse_head(folder, session_id, content).revision

    def _find(self, status: SessionStatus | None, before: str | None, limit: int) -> list[SessionSummary]:
        try:
            summaries = [
                summary
                for summary in self._all()
                if (status is None or summary.status == status) and (before is None or summary.updated_at < before)
            ]
        except OSError as error:
            raise _unlisted(error) from error
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def _all(self) -> Iterator[SessionSummary]:
        with suppress(FileNotFoundError), open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder:
            for match in filter(None, map(_FILE.fullmatch, os.listdir(folder))):
                with suppress(CorruptSession, OSError):
                    session = _read_head(folder, match[0]) or _read(folder, match[1])
                    if session:
                        yield session.summary()

    def _peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        found: list[SessionSummary | CorruptSession] = []
        try:
            with open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder:
                for session_id in filter(_ID.fullmatch, session_ids):
                    try:
                        found.append(self._summary(folder, session_id))
                    except CorruptSession as error:
                        found.append(error)
                    except FileNotFoundError:
                        continue
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable(error) from error
        return found

    def _summary(self, folder: int, session_id: str) -> SessionSummary:
        stamp = _stamp(folder, session_id)
        if kept := self._summaries.get(session_id, stamp):
            return kept
        name = f"session_{session_id}.json"
        session = self._sessions.get(session_id, stamp) or _read_head(folder, name) or _read(folder, session_id)
        if session is None:
            raise FileNotFoundError(name)
        summary = session.summary()
        self._summaries.put(session_id, stamp, summary)
        return summary

    def _names(self) -> list[str]:
        try:
            with open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder:
                return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unlisted(error) from error

    def _archive(self, session_id: str) -> None:
        own = f"session_{session_id}.json"
        try:
            with (
                open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder,
                locked(folder, f"sessions.{_slot(session_id)}.lock", subject="the session folder"),
                _archive_of(folder) as archive,
            ):
                for name in sorted(os.listdir(folder), key=lambda name: name != own):  # the session itself first
                    if name.startswith((own, f"quality_review_{session_id}_", f"resume_{session_id}.")):
                        os.replace(name, name, src_dir_fd=folder, dst_dir_fd=archive)
                os.fsync(archive)
                os.fsync(folder)
        except OSError as error:
            raise StorageError(f"The session could not be archived: {error.strerror or error}") from error

    def _sweep(self) -> None:
        try:
            with open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder:
                for name in filter(is_leftover, os.listdir(folder)):
                    if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > _KEPT_BESIDE:
                        os.unlink(name, dir_fd=folder)
        except OSError:
            return


def _stamp(folder: int, session_id: str) -> Stamp:
    """Tell one content of a file from the next: every save makes a new file."""
    found = os.stat(f"session_{session_id}.json", dir_fd=folder, follow_symlinks=False)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@contextmanager
def _archive_of(folder: int) -> Iterator[int]:
    with suppress(FileExistsError):
        os.mkdir(_ARCHIVE, 0o700, dir_fd=folder)
    archive = os.open(_ARCHIVE, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield archive
    finally:
        os.close(archive)


def _slot(session_id: str) -> int:
    """Spread sessions over a few lock files, the same in every process."""
    return sum(session_id.encode()) % _LOCKS


def _read(folder: int, session_id: str) -> Session | None:
    content = read_in(folder, f"session_{session_id}.json")
    return None if content is None else _parse(folder, session_id, content)


def _read_head(folder: int, name: str) -> Session | None:
    """Read what stands before `_AFTER_HEAD`, if the file is whole and of this release: all that a listing needs."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        end = os.fstat(descriptor).st_size - len(_END)
        head, cut, _ = os.read(descriptor, _HEAD_BYTES).partition(_AFTER_HEAD)
        if not cut or os.pread(descriptor, len(_END), max(0, end)) != _END:
            return None
    finally:
        os.close(descriptor)
    with suppress(ValueError):
        return Session.model_validate_json(head + b"\n}")
    return None


def _parse(folder: int, session_id: str, content: bytes) -> Session:
    """Make a session of its file; a torn one is set aside, and never taken for none."""
    _parse_head(folder, session_id, content)
    try:
        return Session.model_validate_json(content, extra="allow")
    except ValueError as error:
        raise _set_aside(folder, session_id, error) from None


def _parse_head(folder: int, session_id: str, content: bytes) -> _Head:
    """Read what says whether the rest can be read; a file that is no JSON, or another session's, is set aside."""
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


def _set_aside(folder: int, session_id: str, error: Exception) -> CorruptSession:
    name = f"session_{session_id}.json"
    aside = f"{name}.{datetime.now(UTC):%Y%m%dT%H%M%S}{_ASIDE}"
    with suppress(FileNotFoundError):  # somebody else has met it at the same time
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return CorruptSession(
        f"The file of this session is damaged ({reason}) and was renamed to .deepwork/tmp/{aside}",
        hint="Look into it for what was done, then start_workflow anew.",
    )


def _unlisted(error: OSError) -> StorageError:
    return StorageError(f"The sessions could not be listed: {error.strerror or error}")


def _unreadable(error: OSError) -> StorageError:
    return StorageError(f"The session could not be read: {error.strerror or error}; nothing was changed")


@hookimpl
def deepwork_state_stores() -> Iterator[StateStoreSpec]:
    """The store `json`, which is the default."""
    yield StateStoreSpec(name="json", open=JsonStore)
