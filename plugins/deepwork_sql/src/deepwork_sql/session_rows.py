"""The rows of the sessions of one workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlalchemy import case, func, select, update

from deepwork.api import Session, SessionStatus, SessionSummary
from deepwork.errors import CorruptSession, StaleSession, UnknownSession
from deepwork.models.sessions import SCHEMA_VERSION
from deepwork.models.standing import MAX_HEAD, Standing, read_head
from deepwork.ports.state_store import SessionCache
from deepwork_sql.events import CORE
from deepwork_sql.execution import Committed
from deepwork_sql.statement import Statement
from deepwork_sql.tables import sessions
from deepwork_sql.text import dumps
from deepwork_sql.together import Outcome, Refused
from deepwork_sql.transaction import Transaction

_LISTED = "machine = :machine AND project = :project AND NOT archived"
_ONE_OF = {"sqlite": "session_id IN (SELECT value FROM json_each(:ids))", "postgresql": "session_id = ANY(:ids)"}
_LOAD = Statement(
    f"SELECT document, schema_version, revision FROM deepwork_sessions WHERE {_LISTED} AND session_id = :session_id"
)
_PEEK = Statement(
    {
        dialect: f"SELECT session_id, summary, damaged FROM deepwork_sessions WHERE {_LISTED} AND {one_of}"
        for dialect, one_of in _ONE_OF.items()
    }
)
# A summary is written as JSON in one way, in which a quotation mark of a value is never a bare one.
_OTHER = (
    f"SELECT summary FROM deepwork_sessions WHERE {_LISTED} AND status = 'active' AND NOT damaged "
    "AND session_id <> :session_id AND {position}(summary, :workflow) > 0 AND {position}(summary, :principal) > 0 "
    "ORDER BY updated_at DESC LIMIT 10"
)
_OTHER_ACTIVE = Statement({"sqlite": _OTHER.format(position="instr"), "postgresql": _OTHER.format(position="strpos")})
_REVISIONS = f"SELECT session_id, revision, history_length FROM deepwork_sessions WHERE {_LISTED}"
_STORED = Statement(
    {
        "sqlite": f"{_REVISIONS} AND {_ONE_OF['sqlite']}",
        # In one order, or two servers that save the same sessions at once could wait for each other.
        "postgresql": f"{_REVISIONS} AND {_ONE_OF['postgresql']} ORDER BY session_id FOR UPDATE",
    }
)
_CACHED_SESSIONS = 32
# Where an active session stands is at the head of its document.
_HEAD = case((sessions.c.status == "active", func.substr(sessions.c.document, 1, MAX_HEAD))).label("head")
_KEY = ("machine", "project", "session_id")
_SAVED = ("revision", "schema_version", "status", "updated_at", "history_length", "damaged", "summary", "document")
_UPDATE = Statement(
    f"UPDATE deepwork_sessions SET {', '.join(f'{name} = :{name}' for name in _SAVED)} "
    f"WHERE {' AND '.join(f'{name} = :{name}' for name in _KEY)}"
)
_INSERT = Statement(
    f"INSERT INTO deepwork_sessions ({', '.join((*_KEY, *_SAVED))}, archived) "
    f"VALUES ({', '.join(f':{name}' for name in (*_KEY, *_SAVED))}, false) ON CONFLICT DO NOTHING RETURNING revision"
)


class Save(NamedTuple):
    """A session that is to be saved on the revision that is expected; None if it is new."""

    session: Session
    expected: int | None

    @property
    def revision(self) -> int:
        """The revision that it will have."""
        return (self.expected or 0) + 1


class SessionRows:
    """The sessions of one project folder on one machine. All methods run in a transaction."""

    def __init__(self, machine: str, project: str) -> None:
        self._machine = machine
        self._project = project
        self._project_key = {"machine": machine, "project": project}
        self._cache = SessionCache(_CACHED_SESSIONS)
        self._mine = (sessions.c.machine == machine) & (sessions.c.project == project)
        self._listed = self._mine & sessions.c.archived.is_(False)

    def load(self, transaction: Transaction, session_id: str) -> Session | None:
        """Read a session.

        Raises:
            CorruptSession: It cannot be read.
            UnknownSession: It belongs to another workspace.
        """
        row = transaction.row(_LOAD, **self._project_key, session_id=session_id)
        if row is None:
            self._refuse_foreign(transaction, session_id)
            return None
        if row.schema_version > SCHEMA_VERSION:
            raise _too_new(session_id, row.schema_version)
        stamp = row.revision, row.document
        session = self._cache.get(session_id, stamp)
        if session is None:
            try:
                session = Session.model_validate_json(row.document, extra="allow")
            except ValidationError as error:
                raise _damaged(session_id, _reason(error)) from None
            session = session.model_copy(update={"revision": row.revision})
            self._cache.put(session_id, stamp, session)
        return session

    def saving(self, saves: Sequence[Save]) -> Callable[[Transaction], list[Outcome]]:
        """Return the change that saves some sessions. They are written as JSON now, before the transaction begins."""
        rows = [self._values(save) for save in saves]
        return lambda transaction: self._save(transaction, saves, rows)

    def _save(self, transaction: Transaction, saves: Sequence[Save], rows: Sequence[dict[str, Any]]) -> list[Outcome]:
        """Write sessions on their expected revisions, and their new history entries as events."""
        stored = self._stored(transaction, [save.session.session_id for save in saves if save.expected is not None])
        updates: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = []
        outcomes: list[Outcome] = []
        for save, row in zip(saves, rows, strict=True):
            session_id = save.session.session_id
            if save.expected is None:
                stored_entries = self._insert(transaction, session_id, row)
            else:
                stored_entries = stored.pop((session_id, save.expected), None)
                updates += [] if stored_entries is None else [{**self._project_key, "session_id": session_id, **row}]
            if stored_entries is None:
                outcomes.append(Refused(StaleSession(f"Session {session_id!r} was changed meanwhile")))
                continue
            new_events = [_event(save.session, entry) for entry in save.session.history[stored_entries:]]
            events += new_events
            outcomes.append(Committed(save.revision, bool(new_events)))
        if updates:
            transaction.run_each(_UPDATE, updates)
        if events:
            transaction.emit_all(events)
        return outcomes

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

    def other_active(self, transaction: Transaction, session: Session) -> SessionSummary | None:
        """Find another active session of a workflow among the last changed whose summaries say so."""
        summary = session.summary()
        rows = transaction.rows(
            _OTHER_ACTIVE,
            **self._project_key,
            session_id=session.session_id,
            workflow=summary.model_dump_json(include={"job_name", "workflow_name"})[1:-1],
            principal=summary.model_dump_json(include={"principal"})[1:-1],
        )
        return next(filter(session.shares_workflow_with, _readable(row.summary for row in rows)), None)

    def peek(self, transaction: Transaction, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read summaries, in the order of the ids."""
        rows = transaction.rows(_PEEK, **self._project_key, ids=_ids(transaction, session_ids))
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

    def _values(self, save: Save) -> dict[str, Any]:
        """Return the columns of a session."""
        session = save.session.model_copy(update={"revision": save.revision})
        summary, document = session.summary(), session.model_dump_json()
        # A session that is not saved after all is never found in the cache: its document is not in the database.
        self._cache.put(session.session_id, (save.revision, document), session)
        return {
            "revision": save.revision,
            "schema_version": session.schema_version,
            "status": session.status.value,
            "updated_at": summary.updated_at,
            "history_length": len(session.history),
            "summary": summary.model_dump_json(),
            "damaged": False,
            "document": document,
        }

    def _insert(self, transaction: Transaction, session_id: str, values: dict[str, Any]) -> int | None:
        """Write the row of a new session; None if there is one."""
        row = transaction.row(_INSERT, **self._project_key, session_id=session_id, **values)
        return 0 if row is not None else None

    def _stored(self, transaction: Transaction, session_ids: list[str]) -> dict[tuple[str, int], int]:
        """Return how much history some sessions have, by their ids and revisions, and keep their rows as they are."""
        if not session_ids:
            return {}
        rows = transaction.rows(_STORED, **self._project_key, ids=_ids(transaction, session_ids))
        return {(row.session_id, row.revision): row.history_length for row in rows}

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


def _ids(transaction: Transaction, session_ids: Sequence[str]) -> Any:
    """Return a list of ids as an argument of a statement."""
    return [*session_ids] if transaction.dialect == "postgresql" else dumps(session_ids)


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
        "principal": session.principal,
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
