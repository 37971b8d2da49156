"""The rows of the sessions of one workspace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError
from sqlalchemy import and_, bindparam, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from deepwork.api import Session, SessionStatus, SessionSummary
from deepwork.errors import CorruptSession, StaleSession, UnknownSession
from deepwork.models.sessions import SCHEMA_VERSION
from deepwork.models.standing import MAX_HEAD, Standing, read_head
from deepwork_sql.events import CORE
from deepwork_sql.prepared import Prepared
from deepwork_sql.tables import sessions
from deepwork_sql.transaction import Transaction

_EXPECTED = and_(
    sessions.c.machine == bindparam("machine_"),
    sessions.c.project == bindparam("project_"),
    sessions.c.session_id == bindparam("session_id_"),
    sessions.c.revision == bindparam("revision_"),
    sessions.c.archived.is_(False),
)
# Where an active session stands is at the head of its document.
_HEAD = case((sessions.c.status == "active", func.substr(sessions.c.document, 1, MAX_HEAD))).label("head")
_SAVED = ("revision", "schema_version", "status", "updated_at", "history_length", "damaged", "summary", "document")
_LENGTH = Prepared(select(sessions.c.history_length).where(_EXPECTED).with_for_update())
_UPDATE = Prepared(update(sessions).where(_EXPECTED).values({name: bindparam(name) for name in _SAVED}))


def _inserting(insert: Any) -> Any:
    statement = insert(sessions).values({column.name: bindparam(column.name) for column in sessions.columns})
    return statement.on_conflict_do_nothing().returning(sessions.c.revision)


_INSERT = Prepared({"sqlite": _inserting(sqlite.insert), "postgresql": _inserting(postgresql.insert)})


class SessionRows:
    """The sessions of one project folder on one machine. All methods run in a transaction."""

    def __init__(self, machine: str, project: str) -> None:
        self._machine = machine
        self._project = project
        self._key = {"machine_": machine, "project_": project}
        self._mine = (sessions.c.machine == machine) & (sessions.c.project == project)
        self._listed = self._mine & sessions.c.archived.is_(False)

    def load(self, transaction: Transaction, session_id: str) -> Session | None:
        """Read a session.

        Raises:
            CorruptSession: It cannot be read.
            UnknownSession: It belongs to another workspace.
        """
        query = select(sessions.c.document, sessions.c.schema_version, sessions.c.revision)
        row = transaction.execute(query.where(self._listed, sessions.c.session_id == session_id)).first()
        if row is None:
            self._refuse_foreign(transaction, session_id)
            return None
        if row.schema_version > SCHEMA_VERSION:
            raise _too_new(session_id, row.schema_version)
        try:
            session = Session.model_validate_json(row.document, extra="allow")
        except ValidationError as error:
            raise _damaged(session_id, _reason(error)) from None
        return session.model_copy(update={"revision": row.revision})

    def save(self, transaction: Transaction, session: Session, expected: int | None) -> int:
        """Write a session on its expected revision, and its new history entries as events.

        Raises:
            StaleSession: The stored revision is another one.
        """
        revision = (expected or 0) + 1
        values = _values(session, revision)
        if expected is None:
            stored_entries = self._insert(transaction, session.session_id, values)
        else:
            stored_entries = self._update(transaction, session.session_id, values, expected)
        if stored_entries is None:
            raise StaleSession(f"Session {session.session_id!r} was changed meanwhile")
        events = [_event(session, entry) for entry in session.history[stored_entries:]]
        if events:
            transaction.emit_all(events, session.principal)
        return revision

    def find(
        self, transaction: Transaction, status: SessionStatus | None, before: str | None, limit: int
    ) -> list[SessionSummary]:
        """List the sessions that fit, the last changed first."""
        query = select(sessions.c.summary, _HEAD).where(self._listed, sessions.c.damaged.is_(False))
        if status is not None:
            query = query.where(sessions.c.status == status.value)
        if before is not None:
            query = query.where(sessions.c.updated_at < before)
        rows = transaction.execute(query.order_by(sessions.c.updated_at.desc()).limit(limit)).all()
        return [
            summary.model_copy(update={"standing": _standing(row.head)})
            for row in rows
            for summary in _readable([row.summary])
        ]

    def peek(self, transaction: Transaction, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read summaries, in the order of the ids."""
        query = select(sessions.c.session_id, sessions.c.summary, sessions.c.damaged)
        rows = transaction.execute(query.where(self._listed, sessions.c.session_id.in_(session_ids))).all()
        summaries = {row.session_id: _peeked(row) for row in rows}
        return [summaries[session_id] for session_id in session_ids if session_id in summaries]

    def archive(self, transaction: Transaction, session_id: str) -> None:
        """Hide a session."""
        transaction.execute(
            update(sessions).where(self._mine, sessions.c.session_id == session_id).values(archived=True)
        )

    def archived(self, transaction: Transaction) -> list[SessionSummary]:
        """List the sessions that are hidden, the last changed first."""
        query = select(sessions.c.summary).where(
            self._mine, sessions.c.archived.is_(True), sessions.c.damaged.is_(False)
        )
        rows = transaction.execute(query.order_by(sessions.c.updated_at.desc())).scalars()
        return _readable(rows)

    def mark_damaged(self, transaction: Transaction, session_id: str) -> None:
        """Remember that a session could not be read. One of a newer release is not damaged."""
        is_readable_version = sessions.c.schema_version <= SCHEMA_VERSION
        transaction.execute(
            update(sessions)
            .where(self._mine, sessions.c.session_id == session_id, is_readable_version)
            .values(damaged=True)
        )

    def damaged(self, transaction: Transaction) -> list[str]:
        """Name the sessions that could not be read."""
        query = select(sessions.c.session_id).where(self._listed, sessions.c.damaged.is_(True))
        rows = transaction.execute(query.order_by(sessions.c.updated_at)).scalars()
        return [f"{session_id} (in the database)" for session_id in rows]

    def _insert(self, transaction: Transaction, session_id: str, values: dict[str, Any]) -> int | None:
        """Write the row of a new session; None if there is one."""
        key = {"machine": self._machine, "project": self._project, "session_id": session_id}
        return 0 if transaction.row(_INSERT, **key, **values, archived=False) is not None else None

    def _update(self, transaction: Transaction, session_id: str, values: dict[str, Any], expected: int) -> int | None:
        """Write the row of a session, and say how much history it had; None if it is not what was expected."""
        key = {**self._key, "session_id_": session_id, "revision_": expected}
        stored = transaction.row(_LENGTH, **key)
        if stored is None:
            return None
        transaction.run(_UPDATE, **key, **values)
        return int(stored.history_length)

    def _refuse_foreign(self, transaction: Transaction, session_id: str) -> None:
        query = select(sessions.c.machine, sessions.c.project, sessions.c.summary).where(
            sessions.c.session_id == session_id, sessions.c.archived.is_(False), ~self._mine
        )
        row = transaction.execute(query.limit(1)).first()
        if row is not None:
            raise UnknownSession(
                f"Session {session_id!r} belongs to {row.project} on the machine {row.machine!r}, not to "
                f"{self._project} on {self._machine!r}",
                hint="Go on with it there: its files are in that folder.",
                principal=_principal(row.summary),
            )


def _values(session: Session, revision: int) -> dict[str, Any]:
    summary = session.summary()
    return {
        "revision": revision,
        "schema_version": session.schema_version,
        "status": session.status.value,
        "updated_at": summary.updated_at,
        "history_length": len(session.history),
        "summary": summary.model_dump_json(),
        "damaged": False,
        "document": session.model_copy(update={"revision": revision}).model_dump_json(),
    }


def _principal(summary: str) -> str:
    """Return the owner of a summary's session; "", which names no principal, if it cannot be read."""
    with suppress(ValidationError):
        return SessionSummary.model_validate_json(summary).principal
    return ""


def _peeked(row: Any) -> SessionSummary | CorruptSession:
    if row.damaged:
        return _damaged(row.session_id, "it could not be read before")
    try:
        return SessionSummary.model_validate_json(row.summary)
    except ValidationError as error:
        return _damaged(row.session_id, _reason(error))


def _readable(rows: Iterable[str]) -> list[SessionSummary]:
    """Read summaries; a damaged one is told of by `load`."""
    summaries = []
    for row in rows:
        with suppress(ValidationError):
            summaries.append(SessionSummary.model_validate_json(row))
    return summaries


def _standing(text: str | None) -> Standing | None:
    head = read_head(text.encode()) if text else None
    return head.standing if head else None


def _reason(error: ValidationError) -> str:
    return error.errors(include_url=False)[0]["msg"]


def _event(session: Session, entry: Any) -> dict[str, Any]:
    return {
        "source": CORE,
        "event": f"session:{entry.kind}",
        "workflow_id": session.session_id,
        "data": entry.model_dump(mode="json"),
    }


def _damaged(session_id: str, reason: str) -> CorruptSession:
    return CorruptSession(
        f"Session {session_id!r} is damaged in the database ({reason}); its row was left as it is",
        hint="Look into deepwork_sessions.document for what was done, then start_workflow anew.",
    )


def _too_new(session_id: str, version: int) -> CorruptSession:
    return CorruptSession(
        f"Session {session_id!r} was written by a newer release (schema_version {version}; this one knows "
        f"{SCHEMA_VERSION}); it was left as it is",
        hint="Install that release to go on with this session.",
    )
