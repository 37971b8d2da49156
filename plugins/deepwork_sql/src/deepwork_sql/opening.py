"""The database is opened, and brought up to date, at its first use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio import to_thread
from sqlalchemy import Engine

from deepwork_sql.access import Database
from deepwork_sql.address import Address
from deepwork_sql.contents import counts
from deepwork_sql.engines import make_engine, shown_engine
from deepwork_sql.errors import DatabaseError
from deepwork_sql.execution import Executor
from deepwork_sql.feed import align, is_restored
from deepwork_sql.migration import SchemaState, check_releases, migrate, states
from deepwork_sql.retry import OPENING, POSTGRES, SQLITE
from deepwork_sql.schema import installed_schemas
from deepwork_sql.together import Writers
from deepwork_sql.transaction import Transaction
from deepwork_sql.wake_ups import WakeUps

_HOUR_SECONDS = 3600.0


@asynccontextmanager
async def open_database(address: Address) -> AsyncIterator[Database]:
    """Open a database, and close it with everything that belongs to it.

    Raises:
        DatabaseError: It does not answer, has no tables yet and may not get them, or is too new for this release.
    """
    engine = await to_thread.run_sync(_open, address)
    try:
        async with anyio.create_task_group() as tasks:
            executor = Executor(engine, SQLITE if address.dialect == "sqlite" else POSTGRES)
            url = shown_engine(engine, address)
            wake_ups = WakeUps(engine, tasks)
            database = Database(executor, Writers(executor), wake_ups, url=url, machine=address.machine)
            tasks.start_soon(_forget_old_requests, database)
            yield database
            tasks.cancel_scope.cancel()
    finally:
        await to_thread.run_sync(engine.dispose)


def migrate_address(address: Address) -> list[str]:
    """Bring the tables of a database up to date, and say in words what was done.

    Raises:
        DatabaseError: It does not answer, or is too new for this release.
    """
    engine = make_engine(address)
    try:
        installed = installed_schemas()
        executor = Executor(engine, OPENING)
        migrated = executor.write(lambda transaction: migrate(transaction, installed)).result
    finally:
        engine.dispose()
    outdated = {state.installed.schema.name: state.stored_version for state in migrated}
    return [
        f"{item.schema.name}: version {outdated.get(item.schema.name, item.schema.version)} -> {item.schema.version}"
        if item.schema.name in outdated
        else f"{item.schema.name}: version {item.schema.version}, up to date"
        for item in installed
    ]


def _open(address: Address) -> Engine:
    engine = make_engine(address)
    try:
        executor = Executor(engine, OPENING)
        installed = installed_schemas()
        stored = executor.read(lambda transaction: states(transaction.connection, installed))
        check_releases(stored)
        outdated = [state.installed.schema.name for state in stored if state.is_outdated]
        if outdated and not address.migrate:
            raise DatabaseError(
                f"The tables of {', '.join(outdated)} are older than this release, and `migrate` is false",
                hint="Run `deepwork store migrate` once.",
            )
        if outdated:
            executor.write(lambda transaction: migrate(transaction, installed))
        elif executor.read(is_restored):
            executor.write(align)
    except BaseException:
        engine.dispose()
        raise
    return engine


async def _forget_old_requests(database: Database) -> None:
    while True:
        await anyio.sleep(_HOUR_SECONDS)
        try:
            await database.write(Transaction.forget_old_requests)
        except DatabaseError:
            continue


def look(address: Address, project: str) -> tuple[list[SchemaState], dict[str, Any]]:
    """Return how old the tables of a database are and, if they fit this release, how much is in them. Change nothing.

    Raises:
        DatabaseError: It does not answer, or is too new for this release.
    """

    def query(transaction: Transaction) -> tuple[list[SchemaState], dict[str, Any]]:
        stored = states(transaction.connection, installed_schemas())
        check_releases(stored)
        if any(state.is_outdated for state in stored):
            return stored, {}
        return stored, counts(transaction, machine=address.machine, project=project)

    engine = make_engine(address)
    try:
        return Executor(engine, OPENING).read(query)
    finally:
        engine.dispose()
