"""Tasks that wait for others."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_blocked_tasks_name_what_they_wait_for(agent, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"), make_task("b"), make_task("c", "a", "b"))
    await agent.finish(tasks["a"])
    answer = await agent.call("workflow_progress", workflow_id=workflow_id)
    assert answer["blocked_tasks"] == [{"id": tasks["c"], "name": "c", "blocked_by": ["b"]}]
    checked = await agent.call("task_check_dependencies", task_id=tasks["c"])
    assert checked == {
        "satisfied": False,
        "pending": [{"id": tasks["b"], "name": "b", "status": "pending"}],
        "completed": [{"id": tasks["a"], "name": "a", "outcome": "done"}],
    }
    assert (await agent.call("task_get", id=tasks["c"]))["status"] == "blocked"
    refusal = await agent.refusal("task_update_status", id=tasks["c"], status="planning")
    assert (refusal["code"], refusal["recoverable"]) == ("TASK_BLOCKED", True)
    assert "'b'" in refusal["message"]
