"""Statements that are compiled once, and run by the driver itself.

SQLAlchemy takes longer to look up what it has compiled, and to describe a result, than a database takes for a small
statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, Dialect
from sqlalchemy.exc import DBAPIError

Process = Callable[[Any], Any]


class Prepared:
    """A statement that a module makes once. Every `bindparam` without a value is an argument of it.

    Args:
        statement: Any statement of SQLAlchemy without a list of parameters (`in_`), or one for each engine.
    """

    def __init__(self, statement: Any) -> None:
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def run(self, connection: Connection, arguments: Mapping[str, Any]) -> int:
        """Run it, and return how many rows it has changed."""
        compiled = self._of(connection.dialect)
        return int(execute(connection, compiled.sql, compiled.parameters(arguments)).rowcount)

    def run_each(self, connection: Connection, arguments: Iterable[Mapping[str, Any]]) -> None:
        """Run it once for each set of arguments."""
        compiled = self._of(connection.dialect)
        execute_many(connection, compiled.sql, [compiled.parameters(values) for values in arguments])

    def rows(self, connection: Connection, arguments: Mapping[str, Any]) -> list[Any]:
        """Run it, and return its rows, whose values are attributes."""
        compiled = self._of(connection.dialect)
        _, rows = fetch(connection, compiled.sql, compiled.parameters(arguments))
        return compiled.rows(rows)

    def _of(self, dialect: Dialect) -> _Compiled:
        compiled = self._compiled.get(dialect.name)
        if compiled is None:
            is_choice = isinstance(self._statement, dict)
            statement = self._statement[dialect.name] if is_choice else self._statement
            compiled = self._compiled[dialect.name] = _Compiled(statement, dialect)
        return compiled


class _Compiled:
    """A statement as one engine takes it."""

    def __init__(self, statement: Any, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self.sql = str(compiled)
        self._order: list[str] | None = compiled.positiontup if compiled.positional else None
        binds = {name: compiled.binds[name] for name in compiled.params}
        self._fixed = {name: bind.value for name, bind in binds.items() if not bind.required}
        self._writes = {name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in binds.items()}
        self._names = [name for name, bind in binds.items() if bind.required]
        columns = list(getattr(statement, "exported_columns", ()))
        self._row: Callable[[Iterable[Any]], Any] = (
            NamedTuple("Row", [(column.key, Any) for column in columns])._make if columns else tuple
        )
        reads = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
        self._reads = [(place, read) for place, read in enumerate(reads) if read is not None]

    def parameters(self, arguments: Mapping[str, Any]) -> Any:
        values = dict(self._fixed)
        for name in self._names:
            values[name] = arguments[name]
        for name, write in self._writes.items():
            if write is not None:
                values[name] = write(values[name])
        return values if self._order is None else [values[name] for name in self._order]

    def rows(self, fetched: list[Any]) -> list[Any]:
        if not self._reads:
            return [self._row(row) for row in fetched]
        return [self._row(self._read(row)) for row in fetched]

    def _read(self, row: Iterable[Any]) -> list[Any]:
        values = list(row)
        for place, read in self._reads:
            values[place] = read(values[place])
        return values


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
