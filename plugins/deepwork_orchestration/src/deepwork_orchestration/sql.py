"""Writes the SQL of this plugin's statements, from the models of its rows. Imports no SQLAlchemy, as the tools may not.

The migrations make the tables. `number` is the order of insertion in each but the dependencies; no model has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, NamedTuple, Self

from deepwork_orchestration.models import Mapped, Row
from deepwork_sql.statement import Statement

JSON_COLUMNS = frozenset(
    {
        *("body", "capabilities", "config", "context", "detail", "files_changed", "initial_plan", "lost_task_ids"),
        *("metadata", "outcome_detail", "plan", "required_capabilities", "template"),
    }
)
FLAGS = frozenset({"auto_create_workspaces"})
# Cuts a text to as much of it as is wanted; PostgreSQL cuts by an integer only.
CUT = "substr({0}, 1, CAST(:characters AS INTEGER))"


@lru_cache(512)
def sql(text: str) -> Statement:
    """Return the statement of a text; of one text always the same, which is translated once."""
    return Statement(text, json=JSON_COLUMNS, flags=FLAGS)


def columns(model: type[Row], table: str = "", absent: Collection[str] = ()) -> str:
    """Return the columns of a model, in the order in which it takes them; null for the absent ones."""
    before = f"{table}." if table else ""
    names = (field.name for field in fields(model))
    return ", ".join(f"NULL AS {name}" if name in absent else before + name for name in names)


def one_of(column: str, words: Iterable[str]) -> str:
    """Return the condition that a column has one of some words of this code."""
    return f"{column} IN ({', '.join(repr(word) for word in words)})"


def placeholders(name: str, values: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Return a list of arguments for IN, and the arguments."""
    named = {f"{name}_{number}": value for number, value in enumerate(values)}
    return f"({', '.join(f':{argument}' for argument in named)})", named


@lru_cache(512)
def selection(model: type[Row]) -> Statement:
    """Return the statement that reads a row."""
    return sql(f"SELECT {columns(model)} FROM {model.TABLE} WHERE id = :id")


@lru_cache(512)
def insertion(model: type[Row], names: tuple[str, ...]) -> Statement:
    """Return the statement that inserts a row of these columns, and reads it as it is stored."""
    return sql(f"{_insertion(model.TABLE, names)} RETURNING {columns(model)}")


@lru_cache(512)
def bare_insertion(table: str, names: tuple[str, ...]) -> Statement:
    """Return the statement that inserts a row of these columns."""
    return sql(_insertion(table, names))


@lru_cache(512)
def update(model: type[Row], names: tuple[str, ...]) -> Statement:
    """Return the statement that changes these columns of a row, and reads it as it is then."""
    values = ", ".join(f"{name} = :{name}" for name in names)
    return sql(f"UPDATE {model.TABLE} SET {values} WHERE id = :id RETURNING {columns(model)}")


def _insertion(table: str, names: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


class Listing(NamedTuple):
    """The statement of a list, and the statement for the number of characters of each row."""

    rows: Statement
    sizes: Statement


def listing(model: type[Row], rest: str, *expressions: str) -> Listing:
    """Return the statements of a list.

    Args:
        model: Whose rows they are.
        rest: What follows the columns, from FROM to LIMIT.
        expressions: What is read of each row: columns of the model, or `... AS name`; its columns if nothing is named.
    """
    listed = ", ".join(expressions) if expressions else columns(model)
    return Listing(sql(f"SELECT {listed} {rest}"), sql(f"SELECT {size(model, *expressions)} AS size {rest}"))


def size(model: type[Row], *expressions: str) -> str:
    """Return the expression that counts the characters of the texts and the JSON of a row."""
    types = {field.name: str(field.type) for field in fields(model)}
    lengths = [
        f"coalesce(length(CAST({name.rpartition(' AS ')[0] or name} AS TEXT)), 0)"
        for name in expressions or types
        if not types.get(name, "").startswith(("int", "bool"))
    ]
    return " + ".join(lengths)


class Filters:
    """The conditions that a caller has chosen for a list, with their arguments. What is None chooses nothing."""

    def __init__(self, **equal: Any) -> None:
        self.conditions: list[str] = []
        self.arguments: Mapped = {}
        for column, value in equal.items():
            if value is not None:
                self.add(f"{column} = :{column}", **{column: value})

    def add(self, condition: str, **arguments: Any) -> Self:
        """Add a condition."""
        self.conditions.append(condition)
        self.arguments |= arguments
        return self

    def one_of(self, column: str, values: Collection[str] | None) -> Self:
        """Add that a column has one of these values, which may be none at all."""
        if values is None:
            return self
        if not values:
            return self.add("1 = 0")
        listed, named = placeholders(column, sorted(set(values)))
        return self.add(f"{column} IN {listed}", **named)

    def where(self, *conditions: str) -> str:
        """Return the WHERE of these conditions and the chosen ones; nothing without any."""
        listed = [*conditions, *self.conditions]
        return f"WHERE {' AND '.join(listed)}" if listed else ""
