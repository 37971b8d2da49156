"""Types of columns that are the same on both engines."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import BigInteger, Dialect, String, Text
from sqlalchemy.types import TypeDecorator, TypeEngine, UserDefinedType

from deepwork_sql.text import dumps

# Milliseconds since 1970, by the clock of the database.
Milliseconds = BigInteger

# Compared byte by byte on both engines, in a database of any language.
Key = String().with_variant(String(collation="C"), "postgresql")


class JSON(TypeDecorator[Any]):
    """A column that takes and gives objects, lists and other values of JSON.

    It is text on SQLite and `json` on PostgreSQL. (`jsonb` would sort the keys of objects and rewrite numbers.)
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the type of the engine."""
        return dialect.type_descriptor(_Json() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Write a value as text."""
        return None if value is None else dumps(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Read a value; psycopg has read it already."""
        return value if value is None or dialect.name == "postgresql" else json.loads(value)


class _Json(UserDefinedType[Any]):
    """`json` of PostgreSQL, which `JSON` writes and psycopg reads. SQLAlchemy's own type would write it once more."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Name the type in `CREATE TABLE`."""
        return "JSON"
