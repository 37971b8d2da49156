"""Sessions as files: `.deepwork/tmp/session_<id>.json`, readable by a person."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from anyio import to_thread
from pydantic import ValidationError

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
    locked,
    open_folder,
    replace_in,
)

_FILE = re.compile(r"session_([0-9A-Za-z_-]{1,64})\.json")
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_LOCKS = 16


class JsonStore(StateStore):
    """One file is one session and one transaction: state, recorded replies and history together.

    A save compares the revision under a lock of the operating system and acknowledges only what would
    survive a power cut. Several servers may work in one folder.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

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

    def _load(self, session_id: str) -> Session | None:
        if not _ID.fullmatch(session_id):
            return None
        try:
            with open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder:
                return _read(folder, session_id)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error) from error

    def _save(self, session: Session, expected: int | None) -> int:
        name = f"session_{session.session_id}.json"
        revision = (expected or 0) + 1
        stored = session.model_copy(update={"revision": revision})
        content = stored.model_dump_json(indent=2).encode() + b"\n"
        try:
            self._workspace.prepare_state_dir()
            with (
                open_folder(self._workspace.state_dir, inside=self._workspace.root) as folder,
                locked(folder, f"sessions.{_slot(session.session_id)}.lock"),
            ):
                current = _read(folder, session.session_id)
                if (current.revision if current else None) != expected:
                    raise StaleSession(f"Session {session.session_id!r} was changed meanwhile")
                replace_in(folder, name, content)
        except OSError as error:
            raise StorageError(
                f"The session could not be saved: {error.strerror or error}; nothing was changed",
                hint="Mend the cause (space, quota, permissions), then call again.",
            ) from error
        return revision

    def _find(self, status: SessionStatus | None, before: str | None, limit: int) -> list[SessionSummary]:
        summaries = [
            summary
            for summary in self._summaries()
            if (status is None or summary.status == status) and (before is None or summary.updated_at < before)
        ]
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def _summaries(self) -> Iterator[SessionSummary]:
        try:
            names = sorted(os.listdir(self._workspace.state_dir))
        except OSError:
            return
        for name in names:
            match = _FILE.fullmatch(name)
            try:
                session = self._load(match[1]) if match else None
            except (CorruptSession, StorageError):
                continue
            if session:
                yield session.summary()


def _slot(session_id: str) -> int:
    """Spread sessions over a few lock files, the same in every process."""
    return sum(session_id.encode()) % _LOCKS


def _read(folder: int, session_id: str) -> Session | None:
    """Read a session from an open folder; a torn file is set aside, and never taken for none."""
    name = f"session_{session_id}.json"
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read()
    try:
        session = Session.model_validate_json(content)
        if session.session_id != session_id:
            raise ValueError(f"it is of session {session.session_id!r}")
    except ValueError as error:
        raise _set_aside(folder, name, error) from None
    if session.schema_version > SCHEMA_VERSION:
        raise CorruptSession(
            f"Session {session_id!r} was written by a newer release (schema_version {session.schema_version}; "
            f"this one knows {SCHEMA_VERSION}); it was left as it is",
            hint="Install that release to go on with this session.",
        )
    return session


def _set_aside(folder: int, name: str, error: Exception) -> CorruptSession:
    aside = f"{name}.{datetime.now(UTC):%Y%m%dT%H%M%S}.corrupt"
    os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
    reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return CorruptSession(
        f"The file of this session is damaged ({reason}) and was renamed to .deepwork/tmp/{aside}",
        hint="Look into it for what was done, then start_workflow anew.",
    )


def _unreadable(error: OSError) -> StorageError:
    return StorageError(f"The session could not be read: {error.strerror or error}; nothing was changed")


@hookimpl
def deepwork_state_stores() -> Iterator[StateStoreSpec]:
    """The store `json`, which is the default."""
    yield StateStoreSpec(name="json", open=JsonStore)
