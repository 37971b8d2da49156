"""Sessions in a file of SQLite."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Self

from anyio import to_thread
from deepwork.api import Folder, Session, SessionStatus, SessionSummary, StateStore, Workspace
from deepwork.errors import CorruptSession, PathRefused, StaleSession, StorageError

FILE = "acme.db"
TABLE = "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, content TEXT NOT NULL)"


class AcmeStore(StateStore):
    """One row is one session. Several servers may use one file."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def __aenter__(self) -> Self:
        """Make the file."""
        await to_thread.run_sync(self._create)
        return self

    async def load(self, session_id: str) -> Session | None:
        """Read one row."""
        return await to_thread.run_sync(self._load, session_id)

    async def save(self, session: Session, *, expected: int | None) -> int:
        """Write one row, unless another server has changed it."""
        return await to_thread.run_sync(self._save, session, expected)

    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        """List the rows that fit, the last changed first; what is damaged must not hide the others."""
        summaries = [
            summary
            for summary in (await to_thread.run_sync(self._summaries)).values()
            if summary and status in (None, summary.status) and (before is None or summary.updated_at < before)
        ]
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    async def damaged(self) -> list[str]:
        """Name the rows that cannot be read."""
        summaries = await to_thread.run_sync(self._summaries)
        return [f"session {session_id} in {FILE}" for session_id, summary in summaries.items() if summary is None]

    def _create(self) -> None:
        with _in_words(), suppress(FileExistsError):
            self._workspace.prepare_state_dir()
            with Folder.open(self._workspace.state_dir, inside=self._workspace.root) as folder:
                os.close(os.open(FILE, os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder.descriptor))
        with self._database() as database:
            database.execute(TABLE)

    def _load(self, session_id: str) -> Session | None:
        with self._database() as database:
            row = database.execute("SELECT revision, content FROM sessions WHERE id = ?", [session_id]).fetchone()
        if row is None:
            return None
        try:
            return Session.model_validate_json(row[1]).model_copy(update={"revision": row[0]})
        except ValueError:
            raise CorruptSession(f"Session {session_id!r} cannot be read from {FILE}") from None

    def _save(self, session: Session, expected: int | None) -> int:
        revision = (expected or 0) + 1
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")  # no other process writes between the look and the change
            row = database.execute("SELECT revision FROM sessions WHERE id = ?", [session.session_id]).fetchone()
            if (row[0] if row else None) != expected:
                raise StaleSession(f"Session {session.session_id!r} was changed meanwhile")
            new = [session.session_id, revision, session.model_dump_json()]
            database.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", new)
            database.execute("COMMIT")
        return revision

    def _summaries(self) -> dict[str, SessionSummary | None]:
        with self._database() as database:
            return {row[0]: _summary(row[1]) for row in database.execute("SELECT id, content FROM sessions")}

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        state_dir = self._workspace.state_dir
        with _in_words():
            with Folder.open(state_dir, inside=self._workspace.root) as folder:
                if not stat.S_ISREG(folder.status(FILE).st_mode):
                    raise PathRefused(f"{FILE} is not a regular file")
            address = f"{(state_dir / FILE).as_uri()}?mode=rw"
            with closing(sqlite3.connect(address, uri=True, timeout=10, isolation_level=None)) as database:
                yield database


@contextmanager
def _in_words() -> Iterator[None]:
    """Turn errors of the machine into errors that the agent can read."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"The sessions in {FILE} cannot be used: {reason}; nothing was changed") from error


def _summary(content: str) -> SessionSummary | None:
    try:
        return Session.model_validate_json(content).summary()
    except ValueError:
        return None
