"""Sessions in a file of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Self

from anyio import to_thread
from deepwork.api import (
    CorruptSession,
    Session,
    SessionStatus,
    SessionSummary,
    StaleSession,
    StateStore,
    StorageError,
    Workspace,
)

TABLE = "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, content TEXT NOT NULL)"


class AcmeStore(StateStore):
    """One row is one session. Several servers may use one file."""

    def __init__(self, file: Path) -> None:
        self._file = file

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
        """List the rows that fit, the last changed first."""
        summaries = [
            summary
            for summary in await to_thread.run_sync(self._summaries)
            if status in (None, summary.status) and (before is None or summary.updated_at < before)
        ]
        return sorted(summaries, key=lambda summary: summary.updated_at, reverse=True)[:limit]

    def _create(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
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
            raise CorruptSession(f"Session {session_id!r} cannot be read from {self._file.name}") from None

    def _save(self, session: Session, expected: int | None) -> int:
        revision = (expected or 0) + 1
        with self._database() as database:
            database.execute("BEGIN IMMEDIATE")  # nobody else writes between the look and the change
            row = database.execute("SELECT revision FROM sessions WHERE id = ?", [session.session_id]).fetchone()
            if (row[0] if row else None) != expected:
                raise StaleSession(f"Session {session.session_id!r} was changed meanwhile")
            new = [session.session_id, revision, session.model_dump_json()]
            database.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)", new)
            database.execute("COMMIT")
        return revision

    def _summaries(self) -> list[SessionSummary]:
        with self._database() as database:
            rows = database.execute("SELECT content FROM sessions").fetchall()
        return list(_readable(content for (content,) in rows))

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._file, timeout=10, isolation_level=None)) as database:
                yield database
        except sqlite3.Error as error:
            raise StorageError(f"{self._file.name}: {error}; nothing was changed") from error


def _readable(contents: Iterator[str]) -> Iterator[SessionSummary]:
    """Leave out what is damaged: it must not hide the others."""
    for content in contents:
        try:
            yield Session.model_validate_json(content).summary()
        except ValueError:
            continue


def open_store(workspace: Workspace) -> AcmeStore:
    """Make the store of one project; it is opened when it is entered."""
    return AcmeStore(workspace.state_dir / "acme.db")
