"""Statements that are compiled once and run by the driver: their types and their errors are those of SQLAlchemy."""

from __future__ import annotations

import anyio
import pytest
from sqlalchemy import bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from deepwork_sql.prepared import Prepared
from deepwork_sql.tables import feeds, requests

pytestmark = pytest.mark.anyio

KEY = {"principal": "ada", "tool": "claim", "request_id": "r1"}
VALUES = {"arguments": "x", "result": {"b": [1, None], "a": "ü"}, "at": 7}
ADD = Prepared(insert(requests).values({column.name: bindparam(column.name) for column in requests.columns}))
FIND = Prepared(select(requests.c.tool, requests.c.result).where(requests.c.request_id == bindparam("id_")))


async def test_a_row_has_its_values_as_objects_by_name(database):
    assert await database.write(lambda tx: tx.run(ADD, **KEY, **VALUES)) == 1
    row = await database.read(lambda tx: tx.row(FIND, id_="r1"))
    assert (row.tool, row.result) == ("claim", {"b": [1, None], "a": "ü"})
    assert await database.read(lambda tx: tx.rows(FIND, id_="other")) == []
    assert await database.read(lambda tx: tx.row(FIND, id_="other")) is None


async def test_a_boolean_is_one_on_both_engines(database):
    (row,) = await database.read(lambda tx: tx.rows(Prepared(select(feeds.c.only))))
    assert row.only is True


async def test_an_argument_that_is_left_out_is_an_error_before_the_database_is_asked(database):
    with pytest.raises(KeyError):
        await database.read(lambda tx: tx.rows(FIND))


async def test_what_the_driver_refuses_is_an_error_of_sqlalchemy(database):
    await database.write(lambda tx: tx.run(ADD, **KEY, **VALUES))
    with pytest.raises(IntegrityError):
        await database.write(lambda tx: tx.run(ADD, **KEY, **VALUES))


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
