"""Transactions, ids, the clock, texts: what plugins use of the library."""

from __future__ import annotations

import time

import anyio
import pytest
from sqlalchemy import text

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


async def test_a_transaction_has_one_time_however_long_it_takes(database):
    def times(transaction):
        first, started_at = transaction.now, time.monotonic()
        while time.monotonic() < started_at + 0.01:  # the clock of the database has milliseconds
            pass
        return first, transaction.now

    for first, second in (await database.write(times), await database.read(times)):
        assert first == second


async def test_a_change_that_raises_leaves_nothing(database):
    def change(tx):
        tx.emit("acme", "never", workflow_id=None, data={})
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(change)
    assert await database.feed(None) == []


async def test_json_is_stored_as_json_with_its_keys_in_order(database):
    data = {"z": 1, "a": {"y": "ü", "b": [1.0, 2]}, "empty": {}}
    await database.write(lambda tx: tx.emit("acme", "e", workflow_id=None, data=data))
    query = text("SELECT CAST(data AS TEXT) FROM deepwork_events")
    stored = await database.read(lambda tx: tx.execute(query).scalar_one())
    assert stored == '{"z":1,"a":{"y":"ü","b":[1.0,2]},"empty":{}}'
    (event,) = await database.feed(None)
    assert list(event.data) == ["z", "a", "empty"]


async def test_a_lock_can_be_taken_with_the_begin_of_a_transaction(database):
    order = []

    def change(name):
        def run(tx):
            order.append(f"{name} in")
            assert tx.now > 0
            order.append(f"{name} out")

        return run

    async with anyio.create_task_group() as tasks:
        for name in "abc":
            tasks.start_soon(lambda n=name: database.write(change(n), lock='it\'s "quoted" 100%'))
    assert [line.split()[1] for line in order] == ["in", "out"] * 3
