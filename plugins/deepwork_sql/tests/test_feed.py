"""The event feed: nothing is skipped in any order of commits."""

from __future__ import annotations

from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread
from sqlalchemy import create_engine, update

import deepwork_sql
from deepwork.api import Workspace, open_context
from deepwork.errors import ArgumentError
from deepwork.models.history import HistoryEntry
from deepwork.testing import a_session
from deepwork_sql import DatabaseError
from deepwork_sql.store import SqlStore
from deepwork_sql.tables import events

pytestmark = pytest.mark.anyio

WRITERS, EVENTS = 8, 25


def emit(name, *, workflow_id="wf_1", source="acme", **data):
    return lambda tx: tx.emit(source, name, workflow_id=workflow_id, data=data)


async def names(database, after=None, **filters):
    return [event.event for event in await database.feed(after, **filters)]


async def test_events_come_in_the_order_in_which_they_were_written(database):
    for name in "abc":
        await database.write(emit(name))
    assert await names(database) == ["a", "b", "c"]
    assert await names(database, limit=2) == ["a", "b"]


async def test_a_reader_goes_on_after_the_id_that_it_saw_last(database):
    for name in "abc":
        await database.write(emit(name))
    first, *_ = await database.feed(None)
    assert await names(database, first.id) == ["b", "c"]


async def test_the_end_of_the_feed_lets_only_new_events_through(database):
    await database.write(emit("old"))
    end = await database.end_of_feed()
    await database.write(emit("new"))
    assert await names(database, end) == ["new"]


async def test_a_feed_is_narrowed_to_a_source_and_a_workflow(database):
    await database.write(emit("a", source="acme", workflow_id="wf_1"))
    await database.write(emit("b", source="other", workflow_id="wf_1"))
    await database.write(emit("c", source="acme", workflow_id="wf_2"))
    assert await names(database, source="acme") == ["a", "c"]
    assert await names(database, workflow_id="wf_1") == ["a", "b"]
    assert await names(database, source="acme", workflow_id="wf_2") == ["c"]


@pytest.mark.parametrize("cursor", ["7", "x-1", "1-x", "-", "\u0661-1", "99999999999999999999-1"])
async def test_a_malformed_cursor_is_refused(database, cursor):
    with pytest.raises(ArgumentError):
        await database.feed(cursor)


@pytest.mark.smoke
async def test_an_event_that_commits_late_is_not_skipped(database, database_url):
    """The early transaction has the smaller number, and commits after the reader has seen the late one."""
    if database.dialect == "sqlite":
        pytest.skip("SQLite has one writer")
    engine = create_engine(database_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as early:
        with early.begin():
            deepwork_sql.Transaction(early).emit("acme", "early", workflow_id=None, data={})
            await database.write(emit("late"))
            assert await names(database) == [], "a later transaction was shown while an earlier one was open"
        feed = await database.feed(None)
        assert [event.event for event in feed] == ["early", "late"]
    engine.dispose()


@pytest.mark.smoke
async def test_many_writers_lose_no_event_and_keep_the_order_of_each(database):
    feed = []

    async def write(writer):
        for number in range(EVENTS):
            await database.write(emit("tick", workflow_id=f"w{writer}", number=number))

    async def read():
        after = None
        while len(feed) < WRITERS * EVENTS:
            page = await database.feed(after, limit=7)
            feed.extend(page)
            after = page[-1].id if page else after

    with anyio.fail_after(240):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            for writer in range(WRITERS):
                tasks.start_soon(write, writer)
    assert len({event.id for event in feed}) == len(feed) == WRITERS * EVENTS
    for writer in range(WRITERS):
        numbers = [event.data["number"] for event in feed if event.workflow_id == f"w{writer}"]
        assert numbers == list(range(EVENTS))


@pytest.mark.smoke
async def test_who_follows_is_told_of_events_of_this_and_of_other_processes(database, project_on_database):
    """The second context has an engine of its own, as another process would."""
    followed = []

    async def follow(scope_ready):
        after = await database.end_of_feed()
        scope_ready.set()
        async for event in database.follow(after):
            followed.append(event.event)
            if len(followed) == 4:
                return

    async with open_context("acme", project_on_database.root) as elsewhere:
        second_database = await deepwork_sql.database(elsewhere)
        with anyio.fail_after(240):
            async with anyio.create_task_group() as tasks:
                ready = anyio.Event()
                tasks.start_soon(follow, ready)
                await ready.wait()
                for name, place in (("a", database), ("b", second_database), ("c", second_database), ("d", database)):
                    await place.write(emit(name))
    assert followed == ["a", "b", "c", "d"]


async def test_all_who_follow_share_one_reader_and_each_hears_what_it_wants(database, monkeypatch):
    """The reader ends with the last of them."""
    reads, feed = [], database.feed

    async def counted(after, **filters):
        reads.append(filters.get("source"))
        return await feed(after, **filters)

    monkeypatch.setattr(database, "feed", counted)
    filters_of = {"all": {}, "acme": {"source": "acme"}, "other": {"source": "other", "workflow_id": "wf_2"}}
    heard = {name: [] for name in filters_of}
    has_begun = {name: anyio.Event() for name in filters_of}
    start = await database.end_of_feed()

    async def follow(name):
        async with aclosing(database.follow(start, **filters_of[name])) as followed:
            async for event in followed:
                heard[name].append(event.event)
                has_begun[name].set()
                if event.event == "end":
                    return

    async def write(*events):
        for name, source, workflow_id in events:
            await database.write(emit(name, source=source, workflow_id=workflow_id))

    with anyio.fail_after(240):
        async with anyio.create_task_group() as tasks:
            for name in filters_of:
                tasks.start_soon(follow, name)
            await write(("begin", "acme", "wf_1"), ("begin", "other", "wf_2"))
            for event in has_begun.values():
                await event.wait()
            reads.clear()
            await write(("a", "acme", "wf_1"), ("b", "other", "wf_1"), ("c", "other", "wf_2"))
            await write(("end", "other", "wf_2"), ("end", "acme", "wf_1"))
    assert heard["acme"] == ["begin", "a", "end"]
    assert heard["other"] == ["begin", "c", "end"]
    assert heard["all"] == ["begin", "begin", "a", "b", "c", "end"]
    assert set(reads) == {None}
    assert database._hub._reading is None


async def test_who_takes_events_slowly_misses_none_and_gets_none_twice(database, monkeypatch):
    """What no longer fits into its memory is read from the feed."""
    monkeypatch.setattr("deepwork_sql.hub.MAX_WAITING", 5)
    heard = []
    with anyio.fail_after(240):
        async with aclosing(database.follow(None)) as followed:
            await database.write(emit("0"))
            async for event in followed:
                heard.append(event.event)
                if len(heard) < 8:
                    for number in range(4):
                        await database.write(emit(f"{len(heard)}.{number}"))
                if len(heard) == 29:
                    break
    assert heard == await names(database)


async def test_who_follows_is_told_that_the_database_is_away_and_can_follow_again(database, monkeypatch):
    feed, errors = database.feed, []

    async def away(after, **filters):
        raise DatabaseError("the database does not answer")

    async def follow_until_away(ready):
        try:
            async for event in database.follow(None):
                assert event.event == "a"
                ready.set()
        except DatabaseError as error:
            errors.append(error.message)

    await database.write(emit("a"))
    with anyio.fail_after(240):
        async with anyio.create_task_group() as tasks:
            ready = anyio.Event()
            tasks.start_soon(follow_until_away, ready)
            await ready.wait()
            monkeypatch.setattr(database, "feed", away)
    assert errors == ["the database does not answer"]
    monkeypatch.setattr(database, "feed", feed)
    async with aclosing(database.follow(None)) as followed:
        assert (await anext(followed)).event == "a"


async def test_a_feed_goes_on_after_it_was_restored_in_a_younger_cluster(database, project_on_database):
    """A dump keeps the transaction ids of the cluster that it was taken from."""
    if database.dialect == "sqlite":
        pytest.skip("SQLite has no transaction ids")
    await database.write(emit("old"))
    await database.write(lambda tx: tx.execute(update(events).values(xid=events.c.xid + 1_000_000)))
    async with open_context("acme", project_on_database.root) as context:
        restored = await deepwork_sql.database(context)
        (old,) = await restored.feed(None)
        await restored.write(emit("new"))
        assert await names(restored, old.id) == ["new"]


async def test_an_event_with_text_that_cannot_be_stored_is_refused_by_its_field(database):
    with pytest.raises(deepwork_sql.UnstorableText) as error:
        await database.write(emit("a", plan={"steps": [{"name": "ok"}, {"name": "a\0b"}]}))
    assert error.value.field == "data.plan.steps[1].name"
    with pytest.raises(deepwork_sql.UnstorableText) as error:
        await database.write(emit("a", workflow_id="\ud800"))
    assert error.value.field == "workflow_id"
    assert await names(database) == []


async def test_a_write_that_was_begun_ends_although_its_caller_goes(database):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(database.write, emit("a"))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert await names(database) in ([], ["a"])
    await database.write(emit("b"))
    assert (await names(database))[-1] == "b"


async def test_the_wake_up_channel_is_notified_beside_the_transaction(database, database_url):
    """A NOTIFY inside would make all commits of the database wait for each other."""
    if database.dialect == "sqlite":
        pytest.skip("SQLite has no NOTIFY")
    import psycopg

    def wait(connection):
        return [note.channel for note in connection.notifies(timeout=100, stop_after=1)]

    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("LISTEN deepwork_events")
        async with anyio.create_task_group() as tasks:
            heard = []

            async def hear():
                heard.extend(await to_thread.run_sync(wait, listener))

            tasks.start_soon(hear)
            await database.write(emit("a"))
        assert heard == ["deepwork_events"]


async def backwards(database, before=None, **filters):
    return [event.event for event in await database.history(before, deepwork_sql.EventFilter(**filters))]


async def test_the_history_is_read_backwards_in_pages_and_narrowed(database):
    for name in ("task:a", "task:b", "agent:c", "task:d"):
        await database.write(emit(name, source="other" if name == "task:b" else "acme"))
    assert await backwards(database) == ["task:d", "agent:c", "task:b", "task:a"]
    *_, last = await database.history(limit=2)
    assert await backwards(database, last.id) == ["task:b", "task:a"]
    assert await backwards(database, event="task:") == ["task:d", "task:b", "task:a"]
    assert await backwards(database, event="task", source="acme") == ["task:d", "task:a"]
    assert await backwards(database, workflow_id="wf_2") == []
    with pytest.raises(ArgumentError):
        await database.history("x")


async def test_a_viewer_sees_sessions_of_their_own_and_of_their_project(project_on_database, database, tmp_path):
    root = project_on_database.root
    for number, (folder, principal) in enumerate(((root, "ann"), (root, "bob"), (tmp_path / "other", "ann"))):
        folder.mkdir(exist_ok=True)
        session = a_session(session_id=f"{number:032x}", principal=principal)
        store = SqlStore(_given(database), Workspace(folder))
        async with store:
            await store.save(with_history(session), expected=None)
    await database.write(emit("everybodys"))
    viewer = deepwork_sql.Viewer(database.machine, str(root), "ann")
    history = await database.history(None, deepwork_sql.EventFilter(viewer=viewer))
    assert [(event.source, event.workflow_id) for event in history] == [("acme", "wf_1"), ("core", f"{0:032x}")]


def _given(database):
    async def give():
        return database

    return give


def with_history(session):
    entry = HistoryEntry(at=session.started_at, kind="started")
    return session.model_copy(update={"history": [entry]})
