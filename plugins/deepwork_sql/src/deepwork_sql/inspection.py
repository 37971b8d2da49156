"""What can be said of a database: for `deepwork store` and `deepwork doctor`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic import ValidationError

from deepwork.api import SCHEMA_VERSION, Session, open_context
from deepwork_sql import database
from deepwork_sql.address import Address, choose_address
from deepwork_sql.schema import installed_schemas

if TYPE_CHECKING:
    from deepwork_sql.migration import SchemaState
    from deepwork_sql.transaction import Transaction

_PAGE = 100


async def describe(root: str) -> dict[str, Any]:
    """Say which database a project uses, and how much is in it."""
    async with open_context("sql", root) as context:
        opened = await database(context)
        counts = await opened.read(partial(_counts, machine=opened.machine, project=str(context.project_root)))
        return {
            "database": opened.url,
            "engine": opened.dialect,
            "machine": opened.machine,
            "project": str(context.project_root),
            **counts,
        }


def look(address: Address, project: str) -> tuple[list[SchemaState], dict[str, Any]]:
    """Say how old the tables of a database are and, if they fit this release, how much is in them. Change nothing.

    Raises:
        DatabaseError: It does not answer, or is too new for this release.
    """
    from deepwork_sql.engines import make_engine
    from deepwork_sql.execution import Executor
    from deepwork_sql.migration import check_releases, states
    from deepwork_sql.retry import OPENING

    def query(transaction: Transaction) -> tuple[list[SchemaState], dict[str, Any]]:
        found = states(transaction.connection, installed_schemas())
        check_releases(found)
        if any(state.is_outdated for state in found):
            return found, {}
        return found, _counts(transaction, machine=address.machine, project=project)

    engine = make_engine(address)
    try:
        return Executor(engine, OPENING).read(query)
    finally:
        engine.dispose()


async def check_database(root: str) -> list[str]:
    """Look for what is wrong with the database of a project, and give a sentence for each thing."""
    async with open_context("sql", root) as context:
        opened = await database(context)
        problems = await opened.read(_broken_file)
        after: tuple[str, str, str] | None = ("", "", "")
        while after is not None:
            found, after = await opened.read(partial(_broken_sessions, after=after))
            problems += found
    return problems


async def migrate_now(root: str) -> list[str]:
    """Bring the tables up to date, whatever `migrate` says, and tell which were not."""
    from deepwork_sql.opening import migrate_address

    context = open_context("sql", root)
    return await to_thread.run_sync(migrate_address, choose_address(context))


def _counts(transaction: Transaction, *, machine: str, project: str) -> dict[str, Any]:
    from sqlalchemy import func, select

    from deepwork_sql import tables

    rows = transaction.execute(select(tables.schemas).order_by(tables.schemas.c.name)).all()
    mine = (tables.sessions.c.machine == machine) & (tables.sessions.c.project == project)
    count = select(func.count())
    return {
        "schemas": {row.name: row.version for row in rows},
        "sessions": transaction.execute(count.select_from(tables.sessions).where(mine)).scalar_one(),
        "all sessions": transaction.execute(count.select_from(tables.sessions)).scalar_one(),
        "events": transaction.execute(count.select_from(tables.events)).scalar_one(),
    }


def _broken_file(transaction: Transaction) -> list[str]:
    if transaction.dialect == "postgresql":
        return []  # the server checks its files itself
    rows = transaction.connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    return [] if rows == ["ok"] else [f"SQLite reports: {row}" for row in rows]


def _broken_sessions(
    transaction: Transaction, *, after: tuple[str, str, str]
) -> tuple[list[str], tuple[str, str, str] | None]:
    """Read one page of sessions, and say which are damaged and where the next page begins."""
    from sqlalchemy import literal, select, tuple_

    from deepwork_sql.tables import sessions

    key = (sessions.c.machine, sessions.c.project, sessions.c.session_id)
    query = select(*key, sessions.c.schema_version, sessions.c.document).order_by(*key).limit(_PAGE)
    rows = transaction.execute(query.where(tuple_(*key) > tuple_(*map(literal, after)))).all()
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
