"""Statements written as SQL, run by the driver itself. A module that declares some imports no SQLAlchemy.

SQLAlchemy takes longer to look up what it has compiled, and to describe a result, than a database takes for a small
statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from deepwork_sql.text import dumps

if TYPE_CHECKING:
    from sqlalchemy import Connection

Dialect = Literal["sqlite", "postgresql"]

_ARGUMENT = re.compile(r"(?<![:\w]):([a-z]\w*)")


class Statement:
    """A statement with `:name` for each of its arguments, whose values never become a part of its text.

    Args:
        sql: The text, or one for each engine.
        json: The columns, and the arguments of these names, that hold JSON.
        flags: The columns of truth values, which are numbers on SQLite.
    """

    def __init__(
        self, sql: str | Mapping[str, str], *, json: Collection[str] = (), flags: Collection[str] = ()
    ) -> None:
        self._sql = sql
        self._json = frozenset(json)
        self._flags = frozenset(flags)
        self._texts: dict[str, str] = {}
        self._readers: dict[str, _Reader] = {}

    def run(self, connection: Connection, arguments: Mapping[str, Any]) -> int:
        """Run it, and return how many rows it has changed."""
        cursor, _ = self._execute(connection, arguments)
        return int(cursor.rowcount)

    def run_each(self, connection: Connection, arguments: Iterable[Mapping[str, Any]]) -> None:
        """Run it once for each set of arguments."""
        from deepwork_sql.driver import execute_many

        execute_many(connection, self._text(connection.dialect.name), [self._written(values) for values in arguments])

    def rows(self, connection: Connection, arguments: Mapping[str, Any]) -> list[Any]:
        """Run it, and return its rows, whose values are attributes; none of a statement that returns nothing."""
        cursor, rows = self._execute(connection, arguments)
        if not rows:
            return []
        dialect = connection.dialect.name
        reader = self._readers.get(dialect)
        if reader is None:
            names = [column[0] for column in cursor.description]
            reader = self._readers[dialect] = _Reader(names, self._conversions(dialect))
        return reader.read(rows)

    def _execute(self, connection: Connection, arguments: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        from deepwork_sql.driver import fetch

        return fetch(connection, self._text(connection.dialect.name), self._written(arguments))

    def _text(self, dialect: str) -> str:
        text = self._texts.get(dialect)
        if text is None:
            text = self._sql if isinstance(self._sql, str) else self._sql[dialect]
            if dialect == "postgresql":
                text = _ARGUMENT.sub(r"%(\1)s", text.replace("%", "%%"))
            self._texts[dialect] = text
        return text

    def _written(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._json.isdisjoint(arguments):
            return arguments
        return {
            name: dumps(value) if name in self._json and value is not None else value
            for name, value in arguments.items()
        }

    def _conversions(self, dialect: str) -> dict[str, Callable[[Any], Any]]:
        """Return how the values of columns are read that the driver does not read itself."""
        if dialect == "postgresql":
            return {}
        return dict.fromkeys(self._json, json.loads) | dict.fromkeys(self._flags, bool)


class _Reader:
    """Makes rows with attributes of those of a driver."""

    def __init__(self, names: list[str], conversions: Mapping[str, Callable[[Any], Any]]) -> None:
        self._row = _row_type(tuple(names))
        self._places = [(place, conversions[name]) for place, name in enumerate(names) if name in conversions]

    def read(self, rows: Iterable[Any]) -> list[Any]:
        if not self._places:
            return [self._row(row) for row in rows]
        return [self._row(self._converted(row)) for row in rows]

    def _converted(self, row: Iterable[Any]) -> list[Any]:
        values = list(row)
        for place, convert in self._places:
            if values[place] is not None:
                values[place] = convert(values[place])
        return values


@lru_cache(512)
def _row_type(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Any]:
    return NamedTuple("Row", [(name, Any) for name in names])._make
