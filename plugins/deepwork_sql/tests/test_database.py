"""Transactions, ids, the clock, texts: what plugins use of the library."""

from __future__ import annotations

import re
import time

import anyio
import pytest
from sqlalchemy import func, select, text

import deepwork_sql
from deepwork_sql import leases
from deepwork_sql.requests import KEPT_MILLISECONDS, forget_old_requests
from deepwork_sql.tables import requests

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


@pytest.mark.smoke
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


@pytest.mark.parametrize("result", ["5", 5, None, [], {"a": {"b": '"', "c": 1.5}}, "null", True])
async def test_a_recorded_result_is_of_the_same_kind_as_the_first(database, result):
    def request(answer):
        return database.write(
            lambda tx: tx.once(principal="ada", tool="t", request_id="r", arguments={}, work=lambda: answer)
        )

    first, repeated = await request(result), await request("another")
    assert (repeated, type(repeated)) == (first, type(first)) == (result, type(result))


async def test_json_is_stored_as_json_with_its_keys_in_order(database):
    data = {"z": 1, "a": {"y": "ü", "b": [1.0, 2]}, "empty": {}}
    await database.write(lambda tx: tx.emit("acme", "e", workflow_id=None, data=data))
    query = text("SELECT CAST(data AS TEXT) FROM deepwork_events")
    stored = await database.read(lambda tx: tx.execute(query).scalar_one())
    assert stored == '{"z":1,"a":{"y":"ü","b":[1.0,2]},"empty":{}}'
    (event,) = await database.feed(None)
    assert list(event.data) == ["z", "a", "empty"]


async def test_work_that_raises_is_not_recorded(database):
    def refuse():
        raise LookupError

    def request(work):
        return database.write(lambda tx: tx.once(principal="a", tool="t", request_id="r", arguments={}, work=work))

    with pytest.raises(LookupError):
        await request(refuse)
    assert await request(lambda: "done") == "done"


async def test_requests_of_other_principals_and_tools_are_others(database):
    def request(principal, tool):
        return database.write(
            lambda tx: tx.once(
                principal=principal, tool=tool, request_id="r", arguments={}, work=lambda: f"{principal} {tool}"
            )
        )

    pairs = [("ada", "x"), ("ada", "y"), ("bob", "x")]
    assert [await request(*pair) for pair in pairs] == ["ada x", "ada y", "bob x"]


async def test_a_request_of_yesterday_is_a_new_one(database):
    def request(work, **arguments):
        return database.write(
            lambda tx: tx.once(principal="a", tool="t", request_id="r", arguments=arguments, work=lambda: work)
        )

    assert await request("first", n=1) == "first"
    await database.write(lambda tx: tx.execute(requests.update().values(at=requests.c.at - KEPT_MILLISECONDS)))
    assert await request("second", n=2) == "second"
    await database.write(lambda tx: tx.execute(requests.update().values(at=requests.c.at - KEPT_MILLISECONDS)))
    await database.write(forget_old_requests)
    assert await database.read(lambda tx: tx.execute(select(func.count()).select_from(requests)).scalar()) == 0


async def test_of_equal_requests_at_once_one_does_the_work(database):
    done = []

    async def request():
        def work():
            done.append(1)
            return len(done)

        results.append(
            await database.write(lambda tx: tx.once(principal="a", tool="t", request_id="r", arguments={}, work=work))
        )

    results = []
    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(request)
    assert (len(done), results) == (1, [1] * 6)


async def test_a_lease_that_ran_out_is_lost_before_anybody_takes_it(database):
    lease = await database.write(lambda tx: leases.take(tx, "t1", holder="ada", milliseconds=-1))
    for use in (
        lambda tx: leases.renew(tx, "t1", fence=lease.fence, milliseconds=1000),
        lambda tx: leases.check(tx, "t1", lease.fence),
        lambda tx: leases.end(tx, "t1", fence=lease.fence),
    ):
        with pytest.raises(deepwork_sql.LeaseLost, match="ran out"):
            await database.write(use)
    assert await database.read(lambda tx: leases.holder_of(tx, "t1")) is None
    assert await database.read(lambda tx: leases.expired(tx, "t", 10)) == [lease]
    assert await database.read(lambda tx: leases.expired(tx, "_", 10)) == []


async def test_all_leases_of_a_holder_are_renewed_at_once(database):
    for item in ("t1", "t2"):
        await database.write(lambda tx, item=item: leases.take(tx, item, holder="ada", milliseconds=1000))
    await database.write(lambda tx: leases.take(tx, "t3", holder="bob", milliseconds=1000))
    renewed = await database.write(lambda tx: leases.renew_all(tx, "ada", 60_000))
    assert [lease.item for lease in renewed] == ["t1", "t2"]
    assert renewed == await database.read(lambda tx: leases.of_holder(tx, "ada"))
    assert min(lease.expires_at for lease in renewed) > await database.read(lambda tx: tx.now) + 50_000


@pytest.mark.smoke
async def test_of_many_who_take_at_once_one_gets_the_lease(database):
    answers = []

    async def take(holder):
        answers.append(await database.write(lambda tx: leases.take(tx, "t1", holder=holder, milliseconds=60_000)))

    async with anyio.create_task_group() as tasks:
        for n in range(8):
            tasks.start_soon(take, f"h{n}")
    (lease,) = [answer for answer in answers if isinstance(answer, leases.Lease)]
    held = [answer for answer in answers if isinstance(answer, leases.Held)]
    assert {answer.holder for answer in held} == {lease.holder}


def test_an_id_has_its_prefix_and_twelve_characters():
    assert re.fullmatch("wf_[0-9a-z]{12}", deepwork_sql.new_id("wf"))
