"""What can be said of a database: for `deepwork store` and `deepwork doctor`."""

from __future__ import annotations

from functools import partial
from typing import Any

from pydantic import ValidationError

from deepwork.api import Session, open_context
from deepwork.models.sessions import SCHEMA_VERSION
from deepwork_sql import database
from deepwork_sql.contents import counts
from deepwork_sql.statement import Statement
from deepwork_sql.transaction import Transaction

_PAGE = 100
_DOCUMENTS = Statement(
    "SELECT machine, project, session_id, schema_version, document FROM deepwork_sessions "
    "WHERE (machine, project, session_id) > (:machine, :project, :session_id) "
    "ORDER BY machine, project, session_id LIMIT :limit"
)


async def describe(root: str) -> dict[str, Any]:
    """Return which database a project uses, and how much is in it."""
    async with open_context("sql", root) as context:
        opened = await database(context)
        counted = await opened.read(partial(counts, machine=opened.machine, project=str(context.project_root)))
        return {
            "database": opened.url,
            "engine": opened.dialect,
            "machine": opened.machine,
            "project": str(context.project_root),
            **counted,
        }


async def check_database(root: str) -> list[str]:
    """Return the problems of the database of a project, a sentence for each."""
    async with open_context("sql", root) as context:
        opened = await database(context)
        problems = await opened.read(_broken_file)
        after: tuple[str, str, str] | None = ("", "", "")
        while after is not None:
            broken, after = await opened.read(partial(_broken_sessions, after=after))
            problems += broken
    return problems


def _broken_file(transaction: Transaction) -> list[str]:
    if transaction.dialect == "postgresql":
        return []  # the server checks its files itself
    rows = transaction.connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    return [] if rows == ["ok"] else [f"SQLite reports: {row}" for row in rows]


def _broken_sessions(
    transaction: Transaction, *, after: tuple[str, str, str]
) -> tuple[list[str], tuple[str, str, str] | None]:
    """Read one page of sessions, and return which are damaged and where the next page begins."""
    machine, project, session_id = after
    rows = transaction.rows(_DOCUMENTS, machine=machine, project=project, session_id=session_id, limit=_PAGE)
    problems = [
        f"Session {row.session_id!r} of {row.project} on {row.machine!r} is damaged"
        for row in rows
        if row.schema_version <= SCHEMA_VERSION and not _is_readable(row.document)
    ]
    return problems, (rows[-1].machine, rows[-1].project, rows[-1].session_id) if len(rows) == _PAGE else None


def _is_readable(document: str) -> bool:
    try:
        Session.model_validate_json(document, extra="allow")
    except ValidationError:
        return False
    return True
