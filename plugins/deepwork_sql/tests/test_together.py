"""Changes that wait at the same time share a transaction, and each has its own outcome."""

from __future__ import annotations

import signal
import sqlite3
import sys
import threading
from contextlib import asynccontextmanager, contextmanager

import anyio
import pytest
from anyio import to_thread, wait_all_tasks_blocked
from sqlalchemy import Engine, event, text
from sqlalchemy.exc import IntegrityError, OperationalError

import deepwork_sql
from deepwork.api import Workspace, open_context
from deepwork.errors import StaleSession
from deepwork.testing import a_session
from deepwork.testing.wire import PATIENCE
from deepwork_sql.errors import DatabaseError
from deepwork_sql.retry import Retry
from deepwork_sql.store import SqlStore
from deepwork_sql.together import MOST_TOGETHER

pytestmark = pytest.mark.anyio

on_postgres = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
LOCK = "together"


class Writing:
    """Writes that wait until all of them do: the transaction before them is held open so long."""

    def __init__(self, database, tasks):
        self.tasks = tasks
        self.results = {}
        self._database = database

    def begin(self, name, change):
        self.tasks.start_soon(self.write, name, change)

    async def write(self, name, change):
        """Note what a change gives, or its error."""
        try:
            self.results[name] = await self._database.write(change, lock=LOCK)
        except Exception as error:
            self.results[name] = error


@asynccontextmanager
async def all_at_once(database):
    """Have the writes that are begun in here wait together."""
    is_held, may_end = threading.Event(), threading.Event()

    def hold(_):
        is_held.set()
        assert may_end.wait(PATIENCE)

    async with anyio.create_task_group() as tasks:
        writing = Writing(database, tasks)
        tasks.start_soon(writing.write, None, hold)
        assert await to_thread.run_sync(is_held.wait, PATIENCE)
        try:
            yield writing
            await wait_all_tasks_blocked()
        finally:
            may_end.set()
    del writing.results[None]


@contextmanager
def counted_commits():
    commits = []

    def count(_):
        commits.append(1)

    event.listen(Engine, "commit", count)
    try:
        yield commits
    finally:
        event.remove(Engine, "commit", count)


def telling(name):
    """Return a change that emits an event of this name."""

    def change(tx):
        tx.emit("acme", name, workflow_id=None, data={})
        return name

    return change


async def names_in_feed(database):
    return [item.event for item in await database.feed(None)]


@pytest.mark.smoke
async def test_changes_that_wait_share_one_commit(database):
    names = [f"n{number}" for number in range(20)]
    with counted_commits() as commits:
        async with all_at_once(database) as writing:
            for name in names:
                writing.begin(name, telling(name))
    assert writing.results == {name: name for name in names}
    assert await names_in_feed(database) == names
    assert len(commits) == 2, "that of the change before them, and theirs"


async def test_a_change_that_refuses_leaves_nothing_and_the_others_stay(database):
    def refuse(tx):
        telling("refused")(tx)
        raise LookupError("no")

    async with all_at_once(database) as writing:
        for name, change in {"a": telling("a"), "b": refuse, "c": telling("c"), "d": refuse, "e": telling("e")}.items():
            writing.begin(name, change)
    assert {name: type(result) for name, result in writing.results.items()} == {
        "a": str,
        "b": LookupError,
        "c": str,
        "d": LookupError,
        "e": str,
    }
    assert await names_in_feed(database) == ["a", "c", "e"]


async def test_a_change_sees_what_the_changes_before_it_have_made(database):
    def count(tx):
        tx.emit("acme", "counted", workflow_id=None, data={})
        return tx.execute(text("SELECT count(*) FROM deepwork_events WHERE event = 'counted'")).scalar_one()

    async with all_at_once(database) as writing:
        for name in range(5):
            writing.begin(name, count)
    assert writing.results == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5}


async def test_a_change_in_whose_way_another_transaction_was_is_made_again_by_itself(database):
    """The others are made once."""
    runs = []

    def change(name, fail):
        def run(tx):
            runs.append(name)
            result = telling(name)(tx)
            if fail and runs.count(name) == 1:
                _pass_by(tx)
            return result

        return run

    async with all_at_once(database) as writing:
        for name in "abc":
            writing.begin(name, change(name, name == "b"))
    assert writing.results == {"a": "a", "b": "b", "c": "c"}
    assert sorted(runs) == ["a", "b", "b", "c"]
    assert await names_in_feed(database) == ["a", "c", "b"]


def _pass_by(tx):
    """Fail as if another transaction was in the way."""
    if tx.dialect == "postgresql":
        tx.execute(text("DO $$ BEGIN RAISE EXCEPTION 'serialization' USING ERRCODE = '40001'; END $$"))
    error = sqlite3.OperationalError("database is locked")
    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
    raise OperationalError("x", None, error)


async def test_where_the_commit_fails_each_change_is_made_by_itself(database):
    """A constraint that is looked at when the transaction ends refuses one of them, and the others stay."""

    def make_tables(tx):
        tx.execute(text("CREATE TABLE acme_parents (id INTEGER PRIMARY KEY)"))
        refers = "INTEGER REFERENCES acme_parents (id) DEFERRABLE INITIALLY DEFERRED"
        tx.execute(text(f"CREATE TABLE acme_children (id {refers})"))

    def orphan(tx):
        telling("orphan")(tx)
        tx.execute(text("INSERT INTO acme_children VALUES (7)"))

    await database.write(make_tables)
    async with all_at_once(database) as writing:
        for name, change in {"a": telling("a"), "b": orphan, "c": telling("c")}.items():
            writing.begin(name, change)
    assert isinstance(writing.results.pop("b"), IntegrityError)
    assert writing.results == {"a": "a", "c": "c"}
    assert sorted(await names_in_feed(database)) == ["a", "c"]


async def test_a_caller_that_is_cancelled_takes_nothing_from_the_others(database):
    scope = anyio.CancelScope()

    async def write():
        with scope:
            await database.write(telling("cancelled"), lock=LOCK)

    async with all_at_once(database) as writing:
        writing.begin("a", telling("a"))
        writing.tasks.start_soon(write)
        writing.begin("b", telling("b"))
        await wait_all_tasks_blocked()
        scope.cancel()
    assert writing.results == {"a": "a", "b": "b"}
    assert await names_in_feed(database) == ["a", "cancelled", "b"]


async def test_many_changes_are_committed_in_several_transactions(database):
    """Each savepoint makes a transaction of PostgreSQL slower, so that there may be only so many in one."""
    with counted_commits() as commits:
        async with all_at_once(database) as writing:
            for number in range(MOST_TOGETHER + 5):
                writing.begin(number, telling(str(number)))
    assert writing.results == {number: str(number) for number in range(MOST_TOGETHER + 5)}
    assert len(commits) == 3


@on_postgres
async def test_changes_with_other_locks_do_not_wait_for_each_other(database):
    async with all_at_once(database) as writing:
        writing.begin("a", telling("a"))
        with anyio.fail_after(PATIENCE):
            assert await database.write(telling("b"), lock="another") == "b"
        assert "a" not in writing.results


@on_postgres
@pytest.mark.parametrize("cut", ["after", "before"])
async def test_changes_whose_commit_is_lost_on_the_way_are_made_once(project_on_database, proxy, cut):
    """PostgreSQL is asked whether they were committed; if they were not, each is made by itself."""
    runs = []

    def change(name):
        def run(tx):
            runs.append(name)
            return telling(name)(tx)

        return run

    async with open_context("acme", project_on_database.root) as context:
        database = await deepwork_sql.database(context)
        async with all_at_once(database) as writing:
            for name in "abc":
                writing.begin(name, change(name))
            proxy.skip, proxy.cut = 1, cut
        assert proxy.cut is None
        assert writing.results == {"a": "a", "b": "b", "c": "c"}
        assert sorted(await names_in_feed(database)) == ["a", "b", "c"]
    assert len(runs) == (3 if cut == "after" else 6)


@on_postgres
async def test_changes_that_may_have_been_committed_are_not_made_again(project_on_database, proxy, monkeypatch):
    """If the database cannot be asked, their callers are told that the outcome is unknown."""
    monkeypatch.setattr("deepwork_sql.opening.POSTGRES", Retry(seconds=0.5, first=0.01, longest=0.1))
    async with open_context("acme", project_on_database.root) as context:
        database = await deepwork_sql.database(context)
        async with all_at_once(database) as writing:
            for name in "ab":
                writing.begin(name, telling(name))
            proxy.skip, proxy.cut, proxy.stays_away = 1, "after", True
        for result in writing.results.values():
            assert isinstance(result, DatabaseError)
            assert "has not said whether the change was made" in result.message
        proxy.stays_away = False
        assert await names_in_feed(database) == ["a", "b"]


# Sessions.


@asynccontextmanager
async def sessions_in(project):
    """Open the store of sessions as a server of its own does."""
    async with open_context("sql", project.root) as context:
        database = await deepwork_sql.database(context)

        async def opened():
            return database

        async with SqlStore(opened, Workspace(project.root)) as store:
            yield store, database


async def saved(store, sessions):
    """Save sessions at once; return the new revision of each, or its error."""
    outcomes = {}

    async def save(place, session, expected):
        try:
            outcomes[place] = await store.save(session, expected=expected)
        except StaleSession as error:
            outcomes[place] = error

    async with anyio.create_task_group() as tasks:
        for place, (session, expected) in enumerate(sessions):
            tasks.start_soon(save, place, session, expected)
    return [outcomes[place] for place in range(len(sessions))]


async def test_saves_that_wait_share_one_commit_and_a_stale_one_is_refused(project_on_database):
    async with sessions_in(project_on_database) as (store, _):
        ids = [f"s{number}" for number in range(8)]
        assert await saved(store, [(a_session(session_id), None) for session_id in ids]) == [1] * 8
        with counted_commits() as commits:
            expected = [1, 1, 7, 1, 1, 1, 1, 1]
            outcomes = await saved(
                store, [(a_session(session_id), on) for session_id, on in zip(ids, expected, strict=True)]
            )
        assert isinstance(outcomes.pop(2), StaleSession)
        assert outcomes == [2] * 7
        assert len(commits) < 8
        assert [(await store.load(session_id)).revision for session_id in ids] == [2, 2, 1, 2, 2, 2, 2, 2]


async def test_of_two_saves_of_one_session_at_once_one_wins(project_on_database):
    async with sessions_in(project_on_database) as (store, _):
        await store.save(a_session("s"), expected=None)
        goals = ["one", "two", "three"]
        outcomes = await saved(store, [(a_session("s", goal=goal), 1) for goal in goals])
        assert outcomes.count(2) == 1
        assert [type(outcome) for outcome in outcomes].count(StaleSession) == 2
        assert (await store.load("s")).goal == goals[outcomes.index(2)]


async def test_two_servers_that_save_the_same_sessions_at_once_do_not_wait_for_each_other(project_on_database):
    """Their saves come in opposite orders; the rows are locked in one."""
    ids = [f"s{number}" for number in range(12)]
    async with (
        sessions_in(project_on_database) as (first, database),
        sessions_in(project_on_database) as (second, _),
    ):
        await saved(first, [(a_session(session_id), None) for session_id in ids])
        for revision in range(1, 16):
            outcomes = {}

            async def save_all(store, order, revision=revision, outcomes=outcomes):
                results = await saved(store, [(a_session(session_id), revision) for session_id in order])
                for session_id, outcome in zip(order, results, strict=True):
                    outcomes.setdefault(session_id, []).append(outcome)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(save_all, first, ids)
                tasks.start_soon(save_all, second, ids[::-1])
            for session_id in ids:
                assert sorted(isinstance(outcome, StaleSession) for outcome in outcomes[session_id]) == [False, True]
        if database.dialect == "postgresql":
            counted = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
            assert await database.read(lambda tx: tx.execute(counted).scalar_one()) == 0


_KILLED = """
import os, signal, sys
import anyio
from pathlib import Path
from sqlalchemy import Engine, event
from deepwork.testing import a_session
from deepwork_sql.testing import ProjectStore

async def main():
    async with ProjectStore(Path(sys.argv[1])) as store:
        await store.save(a_session("before"), expected=None)
        print("before", flush=True)

        async def save(name):
            await store.save(a_session(name), expected=None)
            print(name, flush=True)

        event.listen(Engine, "commit", lambda connection: os.kill(os.getpid(), signal.SIGKILL))
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(save, name)

anyio.run(main)
"""


async def test_a_server_that_is_killed_before_the_commit_has_acknowledged_none_of_its_saves(project_on_database):
    arguments = [sys.executable, "-c", _KILLED, str(project_on_database.root)]
    ended = await anyio.run_process(arguments, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert ended.stdout.split() == [b"before"]
    async with sessions_in(project_on_database) as (store, _):
        assert [summary.session_id for summary in await store.find()] == ["before"]
        assert await saved(store, [(a_session(name), None) for name in "abc"]) == [1] * 3
