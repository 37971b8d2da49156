"""Sessions in the database, each kept with its machine and its project folder."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Self

from deepwork.api import Session, SessionStatus, SessionSummary, StateStore, Workspace
from deepwork.errors import CorruptSession
from deepwork.ports.state_store import SessionReader
from deepwork_sql.text import is_storable

if TYPE_CHECKING:
    from deepwork_sql.access import Database
    from deepwork_sql.session_rows import SessionRows


class SqlStore(StateStore):
    """The sessions of one workspace in the database of its server.

    The row of a session has its whole document, and beside it what listings and comparisons need. A save writes the
    row and the events of its new history entries in one transaction, together with the saves that wait beside it.
    """

    def __init__(self, open_: Callable[[], Awaitable[Database]], workspace: Workspace) -> None:
        self._open = open_
        self._project = str(workspace.root)

    async def __aenter__(self) -> Self:
        """Open the database, if no other plugin has."""
        from deepwork_sql.session_rows import SessionRows

        self._database = await self._open()
        self._rows = SessionRows(self._database.machine, self._project)
        self._save = self._database.together(self._rows.saving)
        return self

    async def load(self, session_id: str) -> Session | None:
        """Read a session. One that is damaged stays where it is, and is an error whenever it is read.

        Raises:
            UnknownSession: It belongs to another workspace; the error names it.
        """
        if not is_storable(session_id):
            return None
        try:
            return await self._database.read(lambda transaction: self._rows.load(transaction, session_id))
        except CorruptSession:
            await self._database.write(lambda transaction: self._rows.mark_damaged(transaction, session_id))
            raise

    async def save(self, session: Session, *, expected: int | None) -> int:
        """Write a session, and its new history entries as events. A call that is cancelled meanwhile still saves."""
        from deepwork_sql.session_rows import Save

        revision: int = await self._save(Save(session, expected))
        return revision

    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        """List sessions; damaged ones are left out."""
        return await self._database.read(lambda transaction: self._rows.find(transaction, status, before, limit))

    async def other_active(self, session: Session) -> SessionSummary | None:
        """Find another active session of a workflow in one query."""
        return await self._database.read(lambda transaction: self._rows.other_active(transaction, session))

    async def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read the summaries of some sessions in one query."""
        ids = [session_id for session_id in session_ids if is_storable(session_id)]
        return await self._database.read(lambda transaction: self._rows.peek(transaction, ids))

    def reader(self) -> SessionReader:
        """Return the reader of rows in any thread."""
        return RowReader(self._database, self._rows)

    async def archive(self, session_id: str) -> None:
        """Hide a session from `load` and `find`; its row stays."""
        await self._database.write(lambda transaction: self._rows.archive(transaction, session_id))

    async def archived(self) -> list[SessionSummary]:
        """List the sessions that are archived."""
        return await self._database.read(self._rows.archived)

    async def damaged(self) -> list[str]:
        """Name the sessions that could not be read."""
        return await self._database.read(self._rows.damaged)


class RowReader:
    """Reads sessions in the thread that asks."""

    def __init__(self, database: Database, rows: SessionRows) -> None:
        self._database = database
        self._rows = rows

    def load(self, session_id: str) -> Session | None:
        """Read a session."""
        if not is_storable(session_id):
            return None
        try:
            return self._database.look_here(lambda transaction: self._rows.load(transaction, session_id))
        except CorruptSession:
            self._database.write_here(lambda transaction: self._rows.mark_damaged(transaction, session_id))
            raise

    def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read the summaries of some sessions in one query."""
        ids = [session_id for session_id in session_ids if is_storable(session_id)]
        return self._database.look_here(lambda transaction: self._rows.peek(transaction, ids))
