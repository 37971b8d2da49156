"""SQLAlchemy engines for the two kinds of databases, as this plugin uses them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url

from deepwork_sql.address import Address

# So many servers have to share the connections of one PostgreSQL that a process may have no more than this, the one
# that listens among them.
CONNECTIONS = 6
POOL = CONNECTIONS - 1

# Execution option of a transaction of SQLite that only reads.
READ_ONLY = "deepwork_read_only"

_CONNECT_SECONDS = 10


def make_engine(address: Address) -> Engine:
    """Make the engine; it connects to nothing yet."""
    return _postgres(address.secret()) if address.dialect == "postgresql" else _sqlite(address.secret())


def driver_arguments(engine: Engine) -> dict[str, Any]:
    """Give what psycopg needs for a connection of its own, beside the pool."""
    return {"connect_timeout": _CONNECT_SECONDS, **engine.dialect.create_connect_args(engine.url)[1]}


def _postgres(url: str) -> Engine:
    return create_engine(
        make_url(url),
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


def _sqlite(path: str) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=path),
        pool_size=CONNECTIONS,
        max_overflow=0,
        hide_parameters=True,
        # Whoever finds the database locked tries again soon: SQLite itself would sleep longer and longer, and let
        # those who came later pass.
        connect_args={"timeout": 0, "isolation_level": None},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


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
