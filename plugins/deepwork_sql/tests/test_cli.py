"""`deepwork store` and `deepwork events`, as people and programs use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest
from anyio import to_thread
from sqlalchemy import inspect, update

import deepwork_sql
from deepwork.api import SessionStatus, open_context
from deepwork.models.history import HistoryEntry
from deepwork.project.stores import open_store
from deepwork.testing import a_session
from deepwork.testing.samples import at
from deepwork_sql.address import address_of
from deepwork_sql.engines import make_engine
from deepwork_sql.tables import sessions

pytestmark = pytest.mark.anyio
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def run(project_on_database):
    """Run `deepwork` in the project."""

    async def run(*arguments, code=0):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project_on_database.root)]
        completed = await to_thread.run_sync(
            lambda: subprocess.run(command, capture_output=True, text=True, timeout=240)
        )
        assert completed.returncode == code, completed.stderr
        return completed.stdout

    return run


async def save(root, store_name, *new_sessions):
    async with open_store(root, store_name) as store:
        for session in new_sessions:
            await store.save(session, expected=None)


async def plain(root, store_name):
    async with open_store(root, store_name) as store:
        ids = [summary.session_id for summary in await store.find(limit=100)]
        loaded = [await store.load(session_id) for session_id in ids]
    return [session.model_copy(update={"revision": 0}) for session in loaded]


@pytest.mark.smoke
async def test_sessions_are_copied_there_and_back_equal_and_in_order(project_on_database, run):
    root = project_on_database.root
    history = [HistoryEntry(at=at(0), kind="started", detail={"text": "ü"})]
    await save(root, "json", *(a_session(f"s{n}", updated_at=at(n), history=history, newer=n) for n in (2, 1, 3)))
    before = await plain(root, "json")
    assert json.loads(await run("store", "copy", "--from", "json", "--to", "sql", "--json"))["copied"] == [
        "s1",
        "s2",
        "s3",
    ]
    assert await plain(root, "sql") == before
    again = json.loads(await run("store", "copy", "--from", "json", "--to", "sql", "--json"))
    assert (again["copied"], again["present"]) == ([], ["s1", "s2", "s3"])
    for file in project_on_database.state.glob("session_*.json"):
        file.unlink()
    await run("store", "copy", "--from", "sql", "--to", "json")
    assert await plain(root, "json") == before


@on_sqlite
async def test_archived_and_damaged_sessions_are_named_and_a_different_one_is_not_overwritten(project_on_database, run):
    root = project_on_database.root
    over = a_session("old", status=SessionStatus.COMPLETED)
    await save(root, "json", a_session("mine", goal="in json"), a_session("bad"), over)
    await save(root, "sql", a_session("mine", goal="in sql"))
    async with open_store(root, "json") as store:
        await store.archive("old")
    (project_on_database.state / "session_bad.json").write_text("{")
    report = json.loads(await run("store", "copy", "--from", "json", "--to", "sql", "--json", code=1))
    assert (report["different"], report["archived"], len(report["damaged"])) == (["mine"], ["old"], 1)
    assert [session.goal for session in await plain(root, "sql")] == ["in sql"]


@on_sqlite
async def test_a_store_is_not_copied_onto_itself(run):
    assert await run("store", "copy", "--from", "sql", "--to", "sql", code=1) == ""


async def test_the_events_are_printed_from_the_oldest_and_from_an_id_on(project_on_database, run):
    await save(project_on_database.root, "sql", a_session("s1"))
    async with open_context("acme", project_on_database.root) as context:
        database = await deepwork_sql.database(context)
        await database.write(lambda tx: tx.emit("acme", "b\x1b[31m", workflow_id="wf_1", data={"x": "\x1b"}))
    events = [json.loads(line) for line in (await run("events", "--json")).splitlines()]
    assert [(event["source"], event["event"]) for event in events] == [
        ("core", "session:started"),
        ("acme", "b\x1b[31m"),
    ]
    assert "  session:started  s1  by local  {" in await run("events", "--source", "core")
    later_events = await run("events", "--since", events[0]["id"], "--source", "acme")
    assert "  wf_1  by -  {" in later_events
    assert "\x1b" not in later_events
    assert await run("events", "--since", events[1]["id"]) == ""
    assert await run("events", "--since", "nonsense", code=1) == ""


@on_sqlite
async def test_who_follows_gets_each_event_on_a_line_at_once(project_on_database):
    command = [
        sys.executable,
        "-m",
        "deepwork",
        "events",
        "--follow",
        "--json",
        "--path",
        str(project_on_database.root),
    ]
    process = await to_thread.run_sync(lambda: subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    try:
        async with open_context("acme", project_on_database.root) as context:
            database = await deepwork_sql.database(context)
            for name in "ab":
                await database.write(lambda tx, name=name: tx.emit("acme", name, workflow_id=None, data={}))
                line = await to_thread.run_sync(process.stdout.readline)
                assert json.loads(line)["event"] == name
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def test_info_and_check_say_what_is_there(project_on_database, run):
    await save(project_on_database.root, "sql", a_session("s1"))
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


async def test_doctor_looks_at_a_database_without_making_its_tables(database_url, project_on_database, run):
    if database_url.startswith("sqlite"):
        await anyio.Path(database_url.removeprefix("sqlite:///")).touch()
    assert "the first use brings the tables of deepwork" in await run("doctor")
    engine = make_engine(address_of(database_url, "the test", machine="m"))
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    engine.dispose()
    project_on_database.write(".deepwork/config.yml", "plugins: {settings: {sql: {migrate: false}}}\n")
    assert "run `deepwork store migrate` once" in await run("doctor", code=1)
    project_on_database.write(".deepwork/config.yml", "")
    await save(project_on_database.root, "sql")
    assert "0 sessions of this project, 0 events" in await run("doctor")
