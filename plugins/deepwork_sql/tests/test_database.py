"""Transactions, ids, the clock, texts: what plugins use of the library."""

from __future__ import annotations

import re
import time

import pytest

import deepwork_sql
from deepwork_sql import leases

pytestmark = pytest.mark.anyio


async def test_an_event_is_read_by_the_feed(database):
    await database.write(lambda tx: tx.emit("acme", "task:done", workflow_id="wf_1", data={"b": [1, None], "a": "ü"}))
    (event,) = await database.feed(None)
    assert (event.source, event.event, event.workflow_id, event.data) == (
        "acme",
        "task:done",
        "wf_1",
        {"b": [1, None], "a": "ü"},
    )
    assert abs(event.at - time.time() * 1000) < 60_000
    assert await database.feed(event.id) == []


async def test_a_change_that_raises_leaves_nothing(database):
    def change(tx):
        tx.emit("acme", "never", workflow_id=None, data={})
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(change)
    assert await database.feed(None) == []


async def test_a_lease_is_held_until_it_is_given_back(database):
    first = await database.write(lambda tx: leases.take(tx, "t1", holder="ada", milliseconds=60_000))
    held = await database.write(lambda tx: leases.take(tx, "t1", holder="bob", milliseconds=60_000))
    assert (first.fence, held.holder, held.expires_at) == (1, "ada", first.expires_at)
    await database.write(lambda tx: leases.end(tx, "t1", fence=first.fence))
    second = await database.write(lambda tx: leases.take(tx, "t1", holder="bob", milliseconds=60_000))
    assert second.fence == 2
    with pytest.raises(deepwork_sql.LeaseLost):
        await database.write(lambda tx: leases.check(tx, "t1", first.fence))


async def test_a_repeated_request_gets_the_recorded_result(database):
    def request(**arguments):
        return database.write(
            lambda tx: tx.once(
                principal="ada", tool="claim", request_id="r1", arguments=arguments, work=lambda: {"n": time.time_ns()}
            )
        )

    first = await request(a=1, b=2)
    assert await request(b=2, a=1) == first
    with pytest.raises(deepwork_sql.RequestConflict):
        await request(a=2)


def test_an_id_has_its_prefix_and_twelve_characters():
    assert re.fullmatch("wf_[0-9a-z]{12}", deepwork_sql.new_id("wf"))
