"""Tables are brought up to date, and releases that are too old for them are refused."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from typing import NamedTuple

from packaging.version import Version
from sqlalchemy import Connection, insert, inspect, select, update

from deepwork_sql.errors import DatabaseError
from deepwork_sql.feed import align
from deepwork_sql.schema import InstalledSchema, Schema
from deepwork_sql.tables import schemas
from deepwork_sql.transaction import Transaction

LOCK = "deepwork:migrations"


class SchemaState(NamedTuple):
    """A schema in a database and in the installed release; a version is 0 for tables that do not exist yet."""

    installed: InstalledSchema
    stored_version: int
    oldest_release: str | None

    @property
    def is_outdated(self) -> bool:
        """Whether the database lacks migrations of the installed release."""
        return self.stored_version < self.installed.schema.version

    @property
    def is_too_new(self) -> bool:
        """Whether the installed release may not use the database any more."""
        return self.oldest_release is not None and Version(self.installed.release) < Version(self.oldest_release)


def states(connection: Connection, installed: Iterable[InstalledSchema]) -> list[SchemaState]:
    """Compare what is installed with what the database has."""
    rows = {}
    if inspect(connection).has_table(schemas.name):
        rows = {row.name: row for row in connection.execute(select(schemas))}
    return [
        SchemaState(item, rows[item.schema.name].version, rows[item.schema.name].oldest_release)
        if item.schema.name in rows
        else SchemaState(item, 0, None)
        for item in installed
    ]


def check_releases(stored: Iterable[SchemaState]) -> None:
    """Refuse a release that is too old for the database.

    Raises:
        DatabaseError: The installed release is too old; the error says which is needed.
    """
    for state in stored:
        if state.is_too_new:
            name = state.installed.schema.name
            raise DatabaseError(
                f"The tables of {name!r} are of version {state.stored_version}, which needs release "
                f"{state.oldest_release} or newer; this is {state.installed.release}",
                hint="Install that release on this machine too.",
            )


def migrate(transaction: Transaction, installed: Iterable[InstalledSchema]) -> list[SchemaState]:
    """Bring all tables up to date in one transaction, and return what was outdated.

    Raises:
        DatabaseError: The installed release is too old.
    """
    installed = list(installed)
    transaction.lock(LOCK)
    stored = states(transaction.connection, installed)
    check_releases(stored)
    outdated = [state for state in stored if state.is_outdated]
    for state in outdated:
        _upgrade(transaction.connection, state.installed.schema)
        _record(transaction, state)
    align(transaction)
    return outdated


def _upgrade(connection: Connection, schema: Schema) -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(resources.files(schema.migrations)).replace("%", "%%"))
    script = ScriptDirectory.from_config(config)

    def revisions(current: object, _context: object) -> object:
        return script._upgrade_revs("head", current)  # type: ignore[arg-type]  # noqa: SLF001 - as Alembic's manual does

    with EnvironmentContext(config, script, fn=revisions) as environment:
        environment.configure(connection=connection, version_table=f"alembic_version_{schema.name}")
        environment.run_migrations()


def _record(transaction: Transaction, state: SchemaState) -> None:
    schema = state.installed.schema
    values = {
        "version": schema.version,
        "oldest_release": schema.oldest_release,
        "migrated_by": state.installed.release,
        "migrated_at": transaction.now,
    }
    if state.stored_version:
        transaction.execute(update(schemas).where(schemas.c.name == schema.name).values(**values))
    else:
        transaction.execute(insert(schemas).values(name=schema.name, **values))
