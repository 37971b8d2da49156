"""What is stored: the tables that the migrations make, and databases of earlier releases."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from anyio import to_thread
from sqlalchemy import inspect

from deepwork_orchestration.models import Row, WholeWorkflow
from deepwork_orchestration.schema import SCHEMA

pytestmark = pytest.mark.anyio

DUMPS = Path(__file__).parent / "data" / "schemas"
VERSIONS = sorted({int(file.name[:4]) for file in DUMPS.glob("*.sql")})


@pytest.mark.parametrize("model", [*Row.__subclasses__(), WholeWorkflow], ids=lambda model: model.__name__)
async def test_the_migrations_make_the_columns_of_each_model_with_null_where_it_has_none(team, model):
    def stored(transaction):
        columns = inspect(transaction.connection).get_columns(model.TABLE)
        return {column["name"]: column["nullable"] for column in columns}

    async with team.database() as database:
        columns = await database.read(stored)
    assert {field.name: "None" in field.type for field in dataclasses.fields(model)}.items() <= columns.items()


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
    assert list(range(1, SCHEMA.version + 1)) == VERSIONS, "run tools/dump_schema.py orchestration"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_plan_of_an_earlier_schema_is_shown_and_goes_on(team, database_url, version):
    await to_thread.run_sync(load, database_url, version)
    agent = await team.agent()
    plans = (await agent.call("workflow_list"))["workflows"]
    (listed,) = [plan for plan in plans if plan["name"] == "Größe"]
    newer, _ = await agent.workflow({"name": "new", "description": "d", "sequence": 3})
    me = await agent.worker()
    # The tasks of the workflow that is older come first, also where the sequence is the same.
    offered = (await agent.call("task_get_available", agent_id=me))["tasks"]
    assert [task["name"] for task in offered] == ["third", "new"]
    (first, second, _) = (await agent.call("workflow_get", id=listed["id"], include_tasks=True))["tasks"]
    assert (first["status"], second["status"]) == ("completed", "pending")
    (holder, _) = (await agent.call("agent_list"))["agents"]
    assert holder["metadata"] == {"b": [1, None], "a": "ü"}
    assert (await agent.call("task_claim", task_id=second["id"], agent_id=me))["success"] is False
    coordinator = await agent.coordinator()
    await agent.call("task_release", task_id=second["id"], agent_id=coordinator)
    await agent.call("task_claim", task_id=second["id"], agent_id=me)
    await agent.finish(second["id"])
    assert newer != listed["id"]
