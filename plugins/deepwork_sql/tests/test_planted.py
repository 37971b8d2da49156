"""A valid database that a repository brings where earlier releases kept theirs, and files beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from deepwork.testing import Refused
from deepwork.testing.project import DeepworkProject
from deepwork_sql.places import place_of

pytestmark = pytest.mark.anyio

START = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
FORGED = "FORGED WORDS"
ENDLESS = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)"

# What an attacker writes into a database that was made with this very program.
PLANTS = {
    "sessions": f"UPDATE deepwork_sessions SET summary = replace(summary, '\"g\"', '\"{FORGED}\"')",
    "a shape that is none": "UPDATE deepwork_sessions SET schema_version = 'x', revision = x'ff', updated_at = 7",
    "a release that is none": "UPDATE deepwork_schemas SET oldest_release = 'x y z'",
    "text that is none": "UPDATE deepwork_sessions SET summary = CAST(x'ff80' AS TEXT), document = CAST(x'ff' AS TEXT)",
    "a row of 200 MB": "UPDATE deepwork_sessions SET document = zeroblob(200000000)",
    "a trigger without end": f"CREATE TRIGGER t BEFORE INSERT ON deepwork_sessions BEGIN SELECT {ENDLESS}; END",
    "a trigger that forges": "CREATE TRIGGER t AFTER INSERT ON deepwork_sessions BEGIN "
    "UPDATE deepwork_sessions SET status = 'completed'; END",
    "a view without end": "ALTER TABLE deepwork_sessions RENAME TO s; CREATE VIEW deepwork_sessions AS "
    f"SELECT s.* FROM s WHERE {ENDLESS} > 0",
}


@pytest.fixture
def foreign_database(tmp_path, monkeypatch):
    """Make the database of a project as another user would, who has their own state folder."""

    async def make_database(folder):
        folder.mkdir()
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("HOME", str(tmp_path / "home of another"))
            elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "state of another"))
            await work(DeepworkProject(folder))
            return place_of(folder, os.environ, scope="repository").file

    return make_database


async def work(project):
    project.write_job()
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    async with project.agent() as agent:
        return await agent.call("start_workflow", **START)


async def replies(project):
    """What calls are answered with."""
    texts = []
    try:
        async with project.agent() as agent:
            for tool, arguments in (
                ("get_workflows", {}),
                ("start_workflow", START),
                ("finished_step", {"outputs": {"a.md": "a.md"}}),
            ):
                try:
                    texts.append(str(await agent.call(tool, **arguments)))
                except Refused as error:
                    texts.append(str(error))
    except Refused as error:
        texts.append(str(error))
    return texts


def place(project):
    data = project.root / ".deepwork" / "data"
    data.mkdir(parents=True, exist_ok=True)
    return data / "deepwork.db"


@pytest.mark.parametrize("plant", PLANTS)
async def test_a_valid_database_that_a_repository_brings_is_not_even_opened(project, foreign_database, tmp_path, plant):
    planted = await foreign_database(tmp_path / "other")
    with closing(sqlite3.connect(planted)) as connection:
        connection.executescript(f"UPDATE deepwork_sessions SET project = '{project.root}'; {PLANTS[plant]};")
    project.write_job()
    project.write("a.md")
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    shutil.copy(planted, place(project))
    before = place(project).read_bytes()
    texts = await replies(project)
    assert "session_id" in texts[1], "a database of the user's own is used"
    assert not [text for text in texts if "internal error" in text or FORGED in text]
    assert place(project).read_bytes() == before
    assert not place(project).with_name("deepwork.db-wal").exists()


@pytest.mark.parametrize("ending", ["", "-journal", "-wal"])
async def test_what_git_brings_where_the_database_was_once_is_not_played_back(project, ending):
    session = (await work(project))["begin_step"]["session_id"]
    brought = place(project).with_name(f"deepwork.db{ending}")
    brought.write_bytes(b"what a pull brings")
    assert any(session in text for text in await replies(project))
    assert brought.read_bytes() == b"what a pull brings"


async def test_a_write_ahead_log_of_a_server_that_was_killed_is_played_back(project):
    session = (await work(project))["begin_step"]["session_id"]
    database = place_of(project.root, os.environ, scope="repository").file
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE deepwork_sessions SET damaged = 0")
        connection.commit()
        copies = {name: database.with_name(name).read_bytes() for name in ("deepwork.db", "deepwork.db-wal")}
    for name, content in copies.items():
        database.with_name(name).write_bytes(content)
    assert any(session in text for text in await replies(project))
