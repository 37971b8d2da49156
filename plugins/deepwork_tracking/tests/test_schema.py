"""What is stored: the tables that the migrations make, and databases of earlier releases."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from anyio import to_thread
from sqlalchemy import inspect

import deepwork_sql
from deepwork.api import open_context
from deepwork_tracking.schema import SCHEMA
from deepwork_tracking.tables import metadata

pytestmark = pytest.mark.anyio

DUMPS = Path(__file__).parent / "data" / "schemas"
VERSIONS = sorted({int(file.name[:4]) for file in DUMPS.glob("*.sql")})


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


def load(url, version):
    engine = url.partition(":")[0]
    script = (DUMPS / f"{version:04}.{engine}.sql").read_text(encoding="utf-8")
    if engine == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(url) as connection:
            connection.execute("SET search_path = public")
            connection.execute(script)


def test_every_schema_that_has_landed_is_kept_as_a_dump():
    assert list(range(1, SCHEMA.version + 1)) == VERSIONS, "run tools/dump_schema.py tracking"


@pytest.mark.parametrize("version", VERSIONS)
async def test_work_of_an_earlier_schema_is_shown_and_goes_on(shared, database_url, version):
    await to_thread.run_sync(load, database_url, version)
    (listed,) = json.loads(shared.run("track", "list", "--json").stdout)["workflows"]
    async with shared.tracker() as agent:
        workflow_id = listed["workflow_id"]
        context = await agent.context(workflow_id, "tasks", "decisions", "milestones", "blockers", "phase_summary")
        assert context["workflow_name"] == "Größe"
        assert context["milestones"][0]["metadata"] == {"b": [1, None], "a": "ü"}
        assert context["has_blockers"] is True
        ended, running = context["tasks"]
        assert (ended["status"], ended["tests_status"]) == ("SUCCESS", "PASSED")
        completion = await agent.complete(running["id"])
        assert "'/projects/demo' on machine 'laptop'" in completion["verification"]["warnings"][0]
        assert (await agent.end(workflow_id))["metrics"]["files_changed"] == 2
