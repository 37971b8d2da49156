"""The event feed: nothing is skipped in any order of commits."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import create_engine, update

import deepwork_sql
from deepwork.api import open_context
from deepwork.errors import ArgumentError
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
    """The early transaction has the smaller number, and commits after the reader has feed the late one."""
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


async def test_a_write_that_was_begun_ends_although_its_caller_goes(database):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(database.write, emit("a"))
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert await names(database) in ([], ["a"])
    await database.write(emit("b"))
    assert (await names(database))[-1] == "b"
