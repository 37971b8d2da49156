"""SQL run by the driver itself, whose errors become those of SQLAlchemy."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


def execute(connection: Connection, sql: str, parameters: Any = (), **options: Any) -> Any:
    """Run SQL by the driver, and return its cursor. What goes wrong is an error of SQLAlchemy, as elsewhere."""
    driver: Any = connection.connection.driver_connection
    try:
        return driver.execute(sql, parameters, **options)
    except Exception as error:
        raise _wrapped(connection, sql, error) from error


def fetch(connection: Connection, sql: str, parameters: Any) -> tuple[Any, list[Any]]:
    """Run SQL by the driver, and return its cursor and the rows, if it has any."""
    driver: Any = connection.connection.driver_connection
    try:
        cursor = driver.execute(sql, parameters)
        rows: list[Any] = cursor.fetchall() if cursor.description is not None else []
    except Exception as error:
        raise _wrapped(connection, sql, error) from error
    return cursor, rows


def execute_many(connection: Connection, sql: str, parameters: list[Any]) -> None:
    """Run SQL by the driver once for each set of parameters."""
    driver: Any = connection.connection.driver_connection
    try:
        if len(parameters) == 1:  # psycopg begins a pipeline for several
            driver.execute(sql, parameters[0])
        else:
            driver.cursor().executemany(sql, parameters)
    except Exception as error:
        raise _wrapped(connection, sql, error) from error


def _wrapped(connection: Connection, sql: str, error: Exception) -> Exception:
    dialect: Any = connection.dialect
    base: type[Exception] = dialect.loaded_dbapi.Error
    is_cut = isinstance(error, base) and dialect.is_disconnect(error, connection.connection, None)
    if is_cut:
        connection.invalidate(error)
    wrapped: Exception = DBAPIError.instance(
        sql, None, error, base, hide_parameters=True, connection_invalidated=is_cut, dialect=dialect
    )
    return wrapped
