"""The store `sql` keeps the promises of every state store, on both engines."""

from __future__ import annotations

import json
from functools import partial

import pytest
from sqlalchemy import select, update

import deepwork_sql
from deepwork.api import open_context
from deepwork.errors import StaleSession, UnknownSession
from deepwork.models.history import HistoryEntry
from deepwork.testing import StateStoreContract, StateStoreProcessesContract, a_session
from deepwork.testing.samples import at
from deepwork_sql.tables import sessions
from deepwork_sql.testing import ProjectStore, forget_sessions

pytestmark = pytest.mark.anyio


@pytest.fixture
def open_store(project, module_database_url, monkeypatch):
    """Make stores of one project, in a database that other tests have used before."""
    forget_sessions(module_database_url)
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", module_database_url)
    return partial(ProjectStore, project.root)


@pytest.fixture
async def raw(project, open_store):
    """The database, past the store, and what finds a session's row."""
    async with open_context("acme", project.root) as context:
        yield await deepwork_sql.database(context), sessions.c.project == str(project.root)


class TestSqlStore(StateStoreContract):
    @pytest.fixture
    async def store(self, open_store):
        async with open_store() as store:
            yield store

    @pytest.fixture
    def reopen(self, open_store):
        return open_store

    @pytest.fixture
    def read_raw(self, raw):
        database, is_mine = raw

        async def read_raw(session_id):
            query = select(sessions.c.document).where(is_mine, sessions.c.session_id == session_id)
            return json.loads(await database.read(lambda tx: tx.execute(query).scalar_one()))

        return read_raw

    @pytest.fixture
    def spoil(self, raw):
        database, is_mine = raw

        async def spoil(session_id):
            mine = update(sessions).where(is_mine, sessions.c.session_id == session_id)
            half = '{"session_id":'
            await database.write(lambda tx: tx.execute(mine.values(document=half, summary=half)))

        return spoil


class TestSqlStoreProcesses(StateStoreProcessesContract):
    @pytest.fixture
    def reopen(self, open_store):
        return open_store


async def test_a_session_of_another_folder_is_refused_with_machine_and_folder(open_store, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with ProjectStore(elsewhere) as theirs:
        await theirs.save(a_session("far"), expected=None)
    async with open_store() as mine:
        with pytest.raises(UnknownSession) as error:
            await mine.load("far")
        assert str(elsewhere) in error.value.message
        assert await mine.find() == []
        assert await mine.peek(["far"]) == []


async def test_machines_with_the_same_folder_have_sessions_of_their_own(open_store, project):
    project.write(".deepwork/config.yml", "plugins: {settings: {sql: {machine: laptop}}}\n")
    async with open_store() as laptop:
        await laptop.save(a_session("s1", goal="on the laptop"), expected=None)
    project.write(".deepwork/config.yml", "plugins: {settings: {sql: {machine: desk}}}\n")
    async with open_store() as desk:
        assert await desk.find() == []
        with pytest.raises(UnknownSession, match="'laptop'"):
            await desk.load("s1")


async def test_each_new_history_entry_is_one_event_and_a_refused_save_is_none(open_store, raw):
    database, _ = raw
    entries = [HistoryEntry(at=at(n), kind=f"kind{n}", step_id="a", detail={"n": n}) for n in range(3)]
    before = await database.end_of_feed()
    async with open_store() as store:
        first = await store.save(a_session("h1", history=entries[:1]), expected=None)
        second = await store.save(a_session("h1", history=entries), expected=first)
        await store.save(a_session("h1", history=entries, goal="other"), expected=second)
        with pytest.raises(StaleSession):
            await store.save(a_session("h1", history=[*entries, entries[0]]), expected=first)
    events = await database.feed(before, workflow_id="h1")
    assert [(event.source, event.event) for event in events] == [("core", f"session:kind{n}") for n in range(3)]
    assert events[1].data == {"at": at(1), "kind": "kind1", "step_id": "a", "detail": {"n": 1}}


async def test_a_damaged_session_stays_damaged_until_it_is_saved_again(open_store, raw):
    database, is_mine = raw
    async with open_store() as store:
        await store.save(a_session("d1"), expected=None)
        mine = update(sessions).where(is_mine, sessions.c.session_id == "d1")
        await database.write(lambda tx: tx.execute(mine.values(document="[]")))
        for _ in range(2):
            with pytest.raises(Exception, match="damaged in the database"):
                await store.load("d1")
        assert await store.find() == []
        (error,) = await store.peek(["d1"])
        assert "damaged" in error.message


async def test_a_damaged_summary_does_not_hide_the_other_sessions(open_store, raw):
    database, is_mine = raw
    async with open_store() as store:
        for session_id in ("d1", "d2"):
            await store.save(a_session(session_id), expected=None)
        mine = update(sessions).where(is_mine, sessions.c.session_id == "d1")
        await database.write(lambda tx: tx.execute(mine.values(summary="[]")))
        assert [summary.session_id for summary in await store.find()] == ["d2"]
        assert (await store.load("d1")).session_id == "d1"


async def test_a_session_of_a_newer_release_is_refused_and_not_called_damaged(open_store, raw):
    database, is_mine = raw
    async with open_store() as store:
        await store.save(a_session("n1"), expected=None)
        mine = update(sessions).where(is_mine, sessions.c.session_id == "n1")
        await database.write(lambda tx: tx.execute(mine.values(schema_version=99)))
        with pytest.raises(Exception, match="newer release"):
            await store.load("n1")
        assert await store.damaged() == []
