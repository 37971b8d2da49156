"""What is stored: the tables that the migrations make, and databases of earlier releases."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect

import deepwork_sql
from deepwork.api import open_context
from deepwork_tracking.schema import SCHEMA
from deepwork_tracking.tables import metadata

pytestmark = pytest.mark.anyio


async def test_the_migrations_make_the_tables_that_the_code_describes(shared):
    def stored(transaction):
        tables = inspect(transaction.connection)
        return {
            name: (
                {column["name"]: column["nullable"] for column in tables.get_columns(name)},
                {tuple(index["column_names"]) for index in tables.get_indexes(name) if not index["unique"]},
                {tuple(key["constrained_columns"]) for key in tables.get_foreign_keys(name)},
            )
            for name in tables.get_table_names()
            if name.startswith(f"{SCHEMA.name}_")
        }

    async with open_context("tracking", shared.root) as context:
        tables = await (await deepwork_sql.database(context)).read(stored)
    assert tables == {
        name: (
            {column.name: column.nullable for column in table.columns},
            {tuple(column.name for column in index.columns) for index in table.indexes},
            {tuple(column.name for column in key.columns) for key in table.foreign_key_constraints},
        )
        for name, table in metadata.tables.items()
    }
