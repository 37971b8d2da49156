"""Tasks: their statuses and their plans."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_every_transition_of_a_task_and_no_other(agent, make_task):
    allowed = {
        "pending": {"planning"},
        "planning": {"in_progress", "completed"},
        "in_progress": {"completed", "paused", "failed"},
        "paused": {"in_progress"},
        "failed": {"pending", "skipped"},
        "completed": set(),
        "skipped": set(),
    }
    ways = {
        "pending": [],
        "planning": ["planning"],
        "in_progress": ["planning", "in_progress"],
        "paused": ["planning", "in_progress", "paused"],
        "failed": ["planning", "in_progress", "failed"],
        "completed": ["planning", "completed"],
        "skipped": ["planning", "in_progress", "failed", "skipped"],
    }
    names = [f"{current}-{target}" for current in ways for target in [*allowed, "blocked"]]
    _, tasks = await agent.workflow(*map(make_task, names))
    for name in names:
        current, target = name.split("-")
        await agent.move(tasks[name], *ways[current])
        if target in allowed[current]:
            await agent.move(tasks[name], target)
        else:
            refusal = await agent.refusal("task_update_status", id=tasks[name], status=target, outcome="x", error="x")
            assert refusal["code"] == "INVALID_TRANSITION", name


async def test_completed_needs_an_outcome_and_failed_an_error(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    await agent.move(tasks["a"], "planning", "in_progress")
    for status, text, code in (("completed", "outcome", "MISSING_OUTCOME"), ("failed", "error", "MISSING_ERROR")):
        for missing in ({}, {text: ""}, {text: None}):
            refusal = await agent.refusal("task_update_status", id=tasks["a"], status=status, **missing)
            assert (refusal["code"], refusal["recoverable"]) == (code, True)
    await agent.call("task_update_status", id=tasks["a"], status="failed", error="broke", outcome_detail={"log": ["x"]})
    task = await agent.call("task_get", id=tasks["a"])
    assert (task["error"], task["outcome_detail"]) == ("broke", {"log": ["x"]})


async def test_a_task_is_planned_in_planning_and_its_context_is_merged(agent, make_task):
    _, tasks = await agent.workflow(make_task("a", estimated_complexity="low"))
    plan = {"approach": "x" * 300, "steps": ["one"]}
    assert (await agent.refusal("task_set_plan", id=tasks["a"], plan=plan))["code"] == "INVALID_STATE"
    await agent.move(tasks["a"], "planning")
    await agent.call("task_set_plan", id=tasks["a"], plan=plan, context={"k": {"v": 1}})
    task = await agent.call("task_get", id=tasks["a"])
    assert (task["plan"], task["plan_summary"]) == (plan, "x" * 200)
    assert task["context"] == {"estimated_complexity": "low", "k": {"v": 1}}


async def test_a_replanned_task_is_pending_with_a_checkpoint(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    new_plan = {"approach": "otherwise", "steps": []}
    refusal = await agent.refusal("task_replan", id=tasks["a"], reason="r", new_plan=new_plan)
    assert refusal["code"] == "INVALID_STATE"
    await agent.move(tasks["a"], "planning", "in_progress", "failed")
    answer = await agent.call("task_replan", id=tasks["a"], reason="wrong way", new_plan=new_plan)
    task = await agent.call("task_get", id=tasks["a"], include_checkpoints=True)
    (point,) = task["checkpoints"]
    assert (point["id"], point["type"], point["summary"]) == (answer["checkpoint_id"], "replan", "wrong way")
    assert (task["status"], task["plan"], task["error"]) == ("pending", new_plan, None)
