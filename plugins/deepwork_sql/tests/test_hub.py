"""Who follows the feed of a server, through its one reader."""

from __future__ import annotations

from contextlib import aclosing

import anyio
import anyio.lowlevel
import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql import DatabaseError

pytestmark = pytest.mark.anyio


def emit(name, *, workflow_id="wf_1", source="acme", **data):
    return lambda tx: tx.emit(source, name, workflow_id=workflow_id, data=data)


async def names(database, after=None, **filters):
    return [event.event for event in await database.feed(after, **filters)]


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
