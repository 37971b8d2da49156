"""Statements written as SQL: their values, their rows and their errors are the same on both engines."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import IntegrityError, ProgrammingError, StatementError

from deepwork_sql.statement import Statement

pytestmark = pytest.mark.anyio

KEY = {"principal": "ada", "tool": "claim", "request_id": "r1", "arguments": "x", "at": 7}
NAMES = ("principal", "tool", "request_id", "arguments", "at", "result")
ADD = Statement(
    f"INSERT INTO deepwork_requests ({', '.join(NAMES)}) VALUES ({', '.join(f':{name}' for name in NAMES)})",
    json=["result"],
)
FIND = Statement("SELECT tool, result, at FROM deepwork_requests WHERE tool LIKE :tool ORDER BY at", json=["result"])


async def test_json_is_written_and_read_and_each_value_is_an_attribute(database):
    result = {"b": [1, None], "a": "ü: 100% :tool"}
    assert await database.write(lambda tx: tx.run(ADD, **KEY, result=result)) == 1
    await database.write(lambda tx: tx.run_each(ADD, [{**KEY, "request_id": id_, "result": None} for id_ in "ab"]))
    first, second, _ = await database.read(lambda tx: tx.rows(FIND, tool="cl%"))
    assert (first.tool, first.result, first.at) == ("claim", result, 7)
    assert list(first.result) == ["b", "a"]
    assert second.result is None
    assert await database.read(lambda tx: tx.row(FIND, tool="other")) is None


async def test_a_flag_is_a_truth_value(database):
    only = Statement("SELECT \"only\" FROM deepwork_feed WHERE 'a%' <> 'b'", flags=["only"])
    assert (await database.read(lambda tx: tx.row(only))).only is True


async def test_a_value_never_becomes_a_part_of_the_text(database):
    assert await database.read(lambda tx: tx.rows(FIND, tool="' OR 1 = 1 --")) == []


async def test_what_the_driver_refuses_is_an_error_of_sqlalchemy(database):
    await database.write(lambda tx: tx.run(ADD, **KEY, result=1))
    with pytest.raises(IntegrityError):
        await database.write(lambda tx: tx.run(ADD, **KEY, result=1))


async def test_an_argument_that_is_left_out_is_an_error(database):
    with pytest.raises((KeyError, ProgrammingError, StatementError)):
        await database.read(lambda tx: tx.rows(FIND))
