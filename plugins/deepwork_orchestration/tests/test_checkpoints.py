"""Checkpoints of a task."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_checkpoints_are_numbered_and_the_limit_takes_the_end_that_is_wanted(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    for number in range(1, 5):
        kind = "decision" if number % 2 else "progress"
        answer = await agent.call("checkpoint_add", task_id=tasks["a"], type=kind, summary=str(number))
        assert answer["sequence"] == number

    async def listed(**arguments):
        answer = await agent.call("checkpoint_list", task_id=tasks["a"], **arguments)
        return [point["sequence"] for point in answer["checkpoints"]]

    assert await listed() == [1, 2, 3, 4]
    assert await listed(limit=2) == [1, 2]
    assert await listed(since_sequence=2, limit=1) == [3]
    assert await listed(type=["decision"]) == [1, 3]
    task = await agent.call("task_get", id=tasks["a"], include_checkpoints=True, checkpoint_limit=2)
    assert [point["sequence"] for point in task["checkpoints"]] == [3, 4]
    assert "type" in await agent.refused("checkpoint_add", task_id=tasks["a"], type="replan", summary="x")
