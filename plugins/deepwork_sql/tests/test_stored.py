"""Sessions that an earlier release has stored in databases go on in this one, on both engines."""

from __future__ import annotations

import json
import os
import sys

import anyio
import pytest
import sqlalchemy as sa

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql.tables import schemas, sessions

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _stored_in_databases(old_state):
    config = old_state.project.root / ".deepwork/config.yml"
    config.write_text(config.read_text().replace("store: json", "store: sql"))


@pytest.fixture
def deepwork(old_state, old_database):
    """Run a command in the project, and give what it printed."""

    async def run(*arguments, code=0):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(old_state.project.root)]
        process = await anyio.run_process(command, check=False, env={**os.environ})
        assert process.returncode == code, process.stderr.decode()
        return (process.stdout or process.stderr).decode()  # the first use tells on stderr that it moves the database

    return run


@pytest.fixture
def agent(old_state, old_database):
    """Connect to a server of the project whose sessions are in the database."""
    return lambda: old_state.project.agent(external_runner="judge", state_store="sql", tools=["core"])


@pytest.mark.smoke
async def test_every_open_session_goes_on_to_its_end(old_state, old_database, agent, deepwork):
    async with agent() as connected:
        for name in old_state.open_sessions(old_database):
            assert (await old_state.finish(connected, old_database, name))["status"] == "workflow_complete", name
    report = json.loads(await deepwork("sessions", "verify", "--json", code=1))
    verified = {item["session_id"] for item in report["sessions"] if item["verified"]}
    expected = {*old_state.sessions(old_database)} - old_state.unverified
    assert verified == {old_state.sessions(old_database)[name] for name in expected}


async def test_every_open_session_can_be_aborted(old_state, old_database, agent):
    async with agent() as connected:
        for name, session_id in old_state.open_sessions(old_database).items():
            reply = await connected.call("abort_workflow", explanation="no longer needed", session_id=session_id)
            assert reply["aborted_workflow"].startswith("book/"), name


async def test_commands_show_every_session(old_state, old_database, deepwork):
    ids_by_name = old_state.sessions(old_database)
    archived = json.loads(await deepwork("sessions", "list", "--archived", "--json"))["sessions"]
    assert [session["session_id"] for session in archived] == [ids_by_name.pop("archived")]
    listed = json.loads(await deepwork("sessions", "list", "--all", "--json"))["sessions"]
    assert {session["session_id"] for session in listed} == {*ids_by_name.values()}


async def test_a_session_of_a_later_release_is_refused_with_a_sentence(old_state, old_database, agent, deepwork):
    session_id = old_state.sessions(old_database)["at the first step"]
    await _execute(old_state, sa.update(sessions).where(sessions.c.session_id == session_id).values(schema_version=99))
    async with agent() as connected:
        refusal = await connected.refused("finished_step", outputs={}, session_id=session_id)
    for text in (refusal, await deepwork("sessions", "show", session_id, code=1)):
        assert "was written by a newer release" in text
        assert "Traceback" not in text


async def test_an_edited_definition_is_refused_and_can_be_aborted(old_state, old_database, agent, deepwork):
    session_id = old_state.sessions(old_database)["failed once"]
    row = sessions.c.session_id == session_id
    document = json.loads(await _execute(old_state, sa.select(sessions.c.document).where(row), "scalar_one"))
    document["definition"]["steps"]["draft"]["reviews"] = []
    await _execute(old_state, sa.update(sessions).where(row).values(document=json.dumps(document)))
    async with agent() as connected:
        refusal = await connected.refused("finished_step", outputs={"draft.md": "draft.md"}, session_id=session_id)
        assert "was edited where it is stored" in refusal
        await deepwork("sessions", "verify", session_id, code=1)
        await connected.call("abort_workflow", explanation="edited", session_id=session_id)


async def test_a_database_of_a_later_release_is_refused_with_a_sentence(old_state, old_database, agent, deepwork):
    await _execute(
        old_state, sa.update(schemas).where(schemas.c.name == "deepwork").values(version=99, oldest_release="99.0")
    )
    session_id = old_state.sessions(old_database)["at the first step"]
    async with agent() as connected:
        refusal = await connected.refused("finished_step", outputs={}, session_id=session_id)
    for text in (refusal, await deepwork("sessions", "show", session_id, code=1)):
        assert "needs release 99.0 or newer" in text
        assert "Traceback" not in text


async def _execute(old_state, statement, take="close"):
    async with open_context("test", old_state.project.root) as context:
        database = await deepwork_sql.database(context)
        return await database.write(lambda transaction: getattr(transaction.execute(statement), take)())
