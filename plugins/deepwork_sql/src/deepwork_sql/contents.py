"""How much is in a database."""

from __future__ import annotations

from typing import Any

from deepwork_sql.statement import Statement
from deepwork_sql.transaction import Transaction

_SESSIONS = "FROM deepwork_sessions"
_SCHEMAS = Statement("SELECT name, version FROM deepwork_schemas ORDER BY name")
_ALL_SESSIONS = Statement(f"SELECT count(*) AS total {_SESSIONS}")
_OWN_SESSIONS = Statement(f"SELECT count(*) AS total {_SESSIONS} WHERE machine = :machine AND project = :project")
_EVENTS = Statement("SELECT count(*) AS total FROM deepwork_events")


def counts(transaction: Transaction, *, machine: str, project: str) -> dict[str, Any]:
    """Count what is in a database, and the sessions of one project in it."""
    mine = {"machine": machine, "project": project}
    return {
        "schemas": {row.name: row.version for row in transaction.rows(_SCHEMAS)},
        "sessions": transaction.row(_OWN_SESSIONS, **mine).total,
        "all sessions": transaction.row(_ALL_SESSIONS).total,
        "events": transaction.row(_EVENTS).total,
    }
