"""Agents that are changed, sign off or are lost, and what becomes of their claims."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_an_update_merges_metadata_and_null_clears_the_task(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker(metadata={"a": 1})
    await agent.call("agent_update", id=worker, current_task_id=tasks["a"], metadata={"b": 2}, status=None)
    row = await agent.call("agent_get", id=worker)
    assert (row["current_task_id"], row["metadata"]) == (tasks["a"], {"a": 1, "b": 2})
    await agent.call("agent_update", id=worker, workspace_path="/w")
    assert (await agent.call("agent_get", id=worker))["current_task_id"] == tasks["a"]
    await agent.call("agent_update", id=worker, current_task_id=None)
    assert (await agent.call("agent_get", id=worker))["current_task_id"] is None


async def test_signing_off_gives_tasks_back_and_can_be_repeated(agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await agent.move(plan["a"], "planning")
    assert (await agent.call("agent_unregister", id=worker))["success"] is True
    assert await agent.status(plan["a"]) == "pending"
    assert (await agent.call("agent_get", id=worker))["status"] == "offline"
    assert (await agent.call("agent_unregister", id=worker))["success"] is True
    refusal = await agent.refusal("agent_heartbeat", agent_id=worker)
    assert refusal["code"] == "INVALID_STATE"


async def test_setting_an_agent_offline_ends_its_claims_too(agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await agent.move(plan["a"], "planning")
    await agent.call("agent_update", id=worker, status="offline")
    task = await agent.call("task_get", id=plan["a"])
    assert (task["status"], task["assigned_agent_id"]) == ("pending", None)


async def test_a_lost_lease_frees_the_task_and_tells_all_coordinators(team, agent, plan):
    worker = await agent.worker()
    coordinator, absent = await agent.coordinator(), await agent.coordinator("absent")
    await agent.call("agent_unregister", id=absent)
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await agent.move(plan["a"], "planning", "in_progress")
    await team.expire(plan["a"])
    task = await agent.call("task_get", id=plan["a"], include_checkpoints=True)
    assert (task["status"], task["assigned_agent_id"]) == ("pending", None)
    assert [point["type"] for point in task["checkpoints"]] == ["recovery"]
    assert (await agent.call("agent_get", id=worker))["status"] == "offline"
    (message,) = (await agent.call("message_list", agent_id=coordinator))["messages"]
    assert (message["sender_id"], message["task_id"]) == (None, plan["a"])
    assert (await agent.call("message_list", agent_id=absent))["messages"] == []
    assert [data["id"] for _, data in await team.events("task:lost")] == [plan["a"]]


async def test_late_calls_are_refused_and_name_what_was_lost(team, agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await team.expire(plan["a"])
    # The connection still carries the stale fence.
    refusal = await agent.refusal("checkpoint_add", task_id=plan["a"], type="progress", summary="late")
    assert refusal["code"] == "CLAIM_LOST"
    elsewhere = await team.agent()
    refusal = await elsewhere.refusal("task_update_status", id=plan["a"], status="planning", agent_id=worker)
    assert refusal["code"] == "CLAIM_LOST"
    assert plan["a"] in refusal["message"]
    for tool, arguments in (
        ("agent_heartbeat", {"agent_id": worker}),
        ("task_claim", {"task_id": plan["b"], "agent_id": worker}),
    ):
        refusal = await elsewhere.refusal(tool, **arguments)
        assert refusal["code"] == "INVALID_STATE"
        assert plan["a"] in refusal["message"]
        assert 'agent_update with status "online"' in refusal["suggestion"]


async def test_a_late_call_that_is_refused_ends_the_claim_all_the_same(team, agent, plan):
    worker, coordinator = await agent.worker(), await agent.coordinator()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await team.expire(plan["a"])
    assert (await agent.refusal("agent_heartbeat", agent_id=worker))["code"] == "INVALID_STATE"
    assert [name for name, _ in await team.events()][-3:] == ["task:lost", "agent:offline", "message:sent"]
    assert len((await agent.call("message_list", agent_id=coordinator))["messages"]) == 1


async def test_a_lost_agent_comes_back_and_claims_anew_with_a_greater_fence(team, agent, plan):
    worker = await agent.worker()
    first = await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await team.expire(plan["a"])
    await agent.call("agent_update", id=worker, status="online")
    again = await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    assert again["fence"] > first["fence"]
    await agent.finish(plan["a"])


async def test_a_task_that_failed_before_its_lease_ran_out_stays_failed(team, agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await agent.call("task_claim", task_id=plan["b"], agent_id=worker)
    await agent.move(plan["a"], "planning", "in_progress", "failed")
    await team.expire(plan["b"])
    assert await agent.status(plan["a"]) == "failed"
    assert await agent.status(plan["b"]) == "pending"
