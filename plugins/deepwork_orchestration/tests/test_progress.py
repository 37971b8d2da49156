"""What can be started next in a workflow, and how far it is."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_next_tasks_are_free_and_unblocked_in_order_of_sequence(agent, make_task):
    workflow_id, tasks = await agent.workflow(
        make_task("late", sequence=2, parallel_group="g"),
        make_task("early", parallel_group="g"),
        make_task("waits", "early"),
        max_parallel_tasks=2,
    )
    worker = await agent.worker()
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    assert [task["name"] for task in answer["tasks"]] == ["early", "late"]
    assert answer["tasks"][0]["parallel_with"] == [tasks["late"]]
    assert answer["tasks"][0]["can_parallelize"] is True
    await agent.call("task_claim", task_id=tasks["early"], agent_id=worker)
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    assert [task["name"] for task in answer["tasks"]] == ["late"]
    counts = {name: answer[name] for name in ("max_parallel", "recommended_count", "running_count", "free_slots")}
    assert counts == {"max_parallel": 2, "recommended_count": 1, "running_count": 1, "free_slots": 1}
    await agent.finish(tasks["early"])
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    waiting = next(task for task in answer["tasks"] if task["name"] == "waits")
    assert (waiting["dependencies_completed"], waiting["can_parallelize"]) == (["early"], False)


@pytest.mark.parametrize("status", ["paused", "completed", "abandoned"])
async def test_a_closed_workflow_hands_out_nothing(agent, make_task, status):
    workflow_id, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    await agent.call("workflow_update_status", id=workflow_id, status="in_progress")
    await agent.call("workflow_update_status", id=workflow_id, status=status)
    answer = await agent.call("workflow_next_tasks", workflow_id=workflow_id)
    assert (answer["tasks"], answer["workflow_status"]) == ([], status)
    assert (await agent.call("task_get_available", agent_id=worker))["tasks"] == []
    refusal = await agent.refusal("task_claim", task_id=tasks["a"], agent_id=worker)
    assert refusal["code"] == "INVALID_STATE"


async def test_progress_counts_with_all_eight_words(agent, make_task):
    workflow_id, tasks = await agent.workflow(
        make_task("a", parallel_group="g"),
        make_task("b", "a", sequence=2, parallel_group="g"),
        make_task("c", sequence=2),
    )
    await agent.finish(tasks["a"])
    await agent.move(tasks["c"], "planning", "in_progress", "failed")
    answer = await agent.call("workflow_progress", workflow_id=workflow_id)
    zero = dict.fromkeys(
        ("pending", "blocked", "planning", "in_progress", "paused", "completed", "failed", "skipped"), 0
    )
    assert answer["by_status"] == {**zero, "pending": 1, "completed": 1, "failed": 1}
    assert (answer["completed_sequence"], answer["current_sequence"], answer["estimated_remaining"]) == (1, 2, 2)
    assert answer["parallel_groups"] == [{"group_id": "g", "task_count": 2, "completed": 1}]
    await agent.move(tasks["c"], "skipped")
    await agent.finish(tasks["b"])
    answer = await agent.call("workflow_progress", workflow_id=workflow_id)
    assert (answer["completed_sequence"], answer["current_sequence"], answer["estimated_remaining"]) == (2, 0, 0)
    assert (await agent.call("workflow_next_tasks", workflow_id=workflow_id))["all_complete"] is True
