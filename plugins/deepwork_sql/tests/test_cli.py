"""`deepwork store` and `deepwork events`, as people and programs use them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from anyio import to_thread

import deepwork_sql
from deepwork.api import open_context
from deepwork.testing import a_session

pytestmark = pytest.mark.anyio
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_the_events_are_printed_from_the_oldest_and_from_an_id_on(project_on_database, run, save):
    await save("sql", a_session("s1"))
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
