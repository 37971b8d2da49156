"""Types of columns that are the same on both engines."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import BigInteger, Dialect, String, Text
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeDecorator, TypeEngine

# Milliseconds since 1970, by the clock of the database.
Milliseconds = BigInteger

# Compared byte by byte on both engines, whatever language the database sorts for.
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
        """Read a value."""
        return None if value is None else json.loads(value)


class _Json(postgresql.JSON):
    """`json` of PostgreSQL, whose text is written and read by `JSON`."""

    def bind_processor(self, dialect: Dialect) -> None:
        return None

    def result_processor(self, dialect: Dialect, coltype: object) -> None:
        return None


def dumps(value: Any) -> str:
    """Write JSON as short as it can be, with every text as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
