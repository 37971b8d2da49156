"""What is said of a database, by command."""

from __future__ import annotations

import json
import os

import anyio
import pytest
from sqlalchemy import update

import deepwork_sql
from deepwork.api import open_context
from deepwork.testing import a_session
from deepwork_sql.tables import sessions

pytestmark = pytest.mark.anyio
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_info_and_check_say_what_is_there(project_on_database, run, save):
    await save("sql", a_session("s1"))
    info = json.loads(await run("store", "info", "--json"))
    assert (info["database"], info["sessions"], info["events"]) == (os.environ["DEEPWORK_DATABASE_URL"], 1, 1)
    assert json.loads(await run("store", "check", "--json")) == {"ok": True, "problems": []}
    async with open_context("acme", project_on_database.root) as context:
        database = await deepwork_sql.database(context)
        await database.write(lambda tx: tx.execute(update(sessions).values(document="{")))
    (problem,) = json.loads(await run("store", "check", "--json", code=1))["problems"]
    assert "'s1'" in problem


@on_sqlite
async def test_a_file_that_is_no_database_is_told_plainly(database_url, project_on_database, run):
    file = anyio.Path(database_url.removeprefix("sqlite:///"))
    await file.write_bytes(b"This is a letter.\n" * 100)
    assert await run("store", "info", code=1) == ""
    assert "file is not a database" in await run("doctor", code=1)
