"""SQLAlchemy engines for the two kinds of databases, as this plugin uses them."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

from sqlalchemy import URL, Engine, create_engine, event

from deepwork.errors import ConfigError
from deepwork_sql.address import Address
from deepwork_sql.server_url import ServerUrl, secret_values

# So many servers have to share the connections of one PostgreSQL that a process may have no more than this, the one
# that listens among them.
CONNECTIONS = 6
POOL = CONNECTIONS - 1

# Execution option of a transaction of SQLite that only reads.
READ_ONLY = "deepwork_read_only"

_CONNECT_SECONDS = 10
# So short a password could be anywhere in a message, so that what is left of it would tell the password.
_SHORT = 4


def make_engine(address: Address) -> Engine:
    """Make the engine; it connects to nothing yet.

    Raises:
        ConfigError: The driver of PostgreSQL is not installed, or the URL has a parameter that it does not know.
        DatabaseError: The SQLite file can neither be made nor moved to its place.
    """
    if isinstance(address.target, ServerUrl):
        return _postgres(address.target)
    if isinstance(address.target, Path):
        return _sqlite(address.target)
    prepared = address.target.prepare()
    if isinstance(prepared, Path):
        return _sqlite(prepared)
    engine = _sqlite(prepared.path)
    event.listen(engine, "engine_disposed", lambda _engine: prepared.close())
    return engine


def shown_engine(engine: Engine, address: Address) -> str:
    """Write which database an engine uses: a file of an earlier release may still be where it was."""
    return f"sqlite:///{engine.url.database}" if address.dialect == "sqlite" else address.shown


def cleaned(engine: Engine, message: str) -> str:
    """Take passwords out of the message of a driver, as they are and as URLs write them."""
    values = secret_values(engine.url.password, engine.url.query)
    spellings = {write(value) for value in values for write in (str, quote, quote_plus)}
    for spelling in sorted(spellings, key=len, reverse=True):
        if spelling in message and len(spelling) < _SHORT:
            return "the driver's message is not shown, because it may have the password"
        message = message.replace(spelling, "…")
    return message


def driver_arguments(engine: Engine) -> dict[str, Any]:
    """Return what psycopg needs for a connection of its own, beside the pool."""
    return {"connect_timeout": _CONNECT_SECONDS, **engine.dialect.create_connect_args(engine.url)[1]}


def _postgres(server: ServerUrl) -> Engine:
    url = URL.create(
        "postgresql+psycopg",
        username=server.user,
        password=server.password,
        host=server.host,
        port=server.port,
        database=server.database,
        query=dict(server.parameters),
    )
    try:
        engine = _postgres_engine(url)
    except ImportError as error:  # psycopg is not there, or finds no libpq
        raise ConfigError(
            f"the database {server} needs the driver of PostgreSQL, which cannot be used here: {error}",
            hint=f'Install deepwork-sql with its extra "postgresql", or psycopg[binary] into {sys.prefix}.',
        ) from None
    _check_parameters(engine, server)
    return engine


def _check_parameters(engine: Engine, server: ServerUrl) -> None:
    """Refuse now what psycopg would refuse when it connects, as if the program had called it wrongly."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo

    arguments = driver_arguments(engine)
    arguments.pop("context", None)  # of the driver's own, and no parameter of a server
    try:
        make_conninfo(**arguments)
        int(arguments["connect_timeout"])
    except (ProgrammingError, ValueError):
        raise ConfigError(
            f"the URL of the database {server} has a parameter that PostgreSQL does not know, or a wrong value of one",
            hint="Correct what stands behind its `?`; in a password, write ? as %3F.",
        ) from None


def _postgres_engine(url: URL) -> Engine:
    return create_engine(
        url,
        pool_size=POOL,
        max_overflow=0,
        # The driver itself would send BEGIN alone, and wait for the answer: `execution` sends it with the first query.
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "deepwork",
            "keepalives_idle": 30,
            "tcp_user_timeout": 30_000,
        },
    )


def _sqlite(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        pool_size=CONNECTIONS,
        max_overflow=0,
        hide_parameters=True,
        # A writer that finds the database locked tries again soon: SQLite itself would sleep longer and longer, and let
        # later ones pass.
        connect_args={"timeout": 0, "isolation_level": None},
    )
    setattr(engine.dialect, "is_disconnect", _is_read_only)  # noqa: B010 - mypy lets nobody assign to a method
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _is_read_only(error: Exception, _connection: Any, _cursor: Any) -> bool:
    """True if a connection is of no more use: a file that could not be written when it was opened can only be read."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a power cut
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA trusted_schema = OFF")  # what is written in a file calls no function that has effects
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    # A transaction that reads first and writes later could not be begun again where it stands.
    read_only = connection.get_execution_options().get(READ_ONLY)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
