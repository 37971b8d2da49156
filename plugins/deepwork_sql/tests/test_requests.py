"""Requests that are carried out once, however often they arrive."""

from __future__ import annotations

import time

import anyio
import pytest
from sqlalchemy import func, select

import deepwork_sql
from deepwork_sql.requests import KEPT_MILLISECONDS
from deepwork_sql.tables import requests

pytestmark = pytest.mark.anyio


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
    await database.write(lambda tx: tx.forget_old_requests())
    assert await database.read(lambda tx: tx.execute(select(func.count()).select_from(requests)).scalar()) == 0


async def test_equal_requests_at_once_do_the_work_once(database):
    runs = []

    async def request():
        def work():
            runs.append(1)
            return len(runs)

        results.append(
            await database.write(lambda tx: tx.once(principal="a", tool="t", request_id="r", arguments={}, work=work))
        )

    results = []
    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(request)
    assert (len(runs), results) == (1, [1] * 6)


async def test_what_is_recorded_can_be_read_without_doing_the_work(database):
    request = {"principal": "a", "tool": "t", "request_id": "r", "arguments": {"n": 1}}
    assert await database.read(lambda tx: tx.recorded(**request)) is None
    await database.write(lambda tx: tx.once(**request, work=lambda: None))
    answer = await database.read(lambda tx: tx.recorded(**request))
    assert (answer is not None, answer.result) == (True, None)
    with pytest.raises(deepwork_sql.RequestConflict):
        await database.read(lambda tx: tx.recorded(**{**request, "arguments": {"n": 2}}))
