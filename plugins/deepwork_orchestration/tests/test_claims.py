"""Who holds a task, whose calls may change it, and how a claim ends."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

pytestmark = pytest.mark.anyio


async def test_a_claim_has_a_fence_and_a_lease_and_makes_the_agent_busy(agent, plan):
    worker = await agent.worker()
    claim = await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    assert claim.keys() == {"success", "fence", "lease_expires_at"}
    assert claim["success"] is True
    row = await agent.call("agent_get", id=worker)
    assert (row["status"], row["current_task_id"]) == ("busy", plan["a"])
    task = await agent.call("task_get", id=plan["a"])
    assert (task["assigned_agent_id"], task["status"]) == (worker, "pending")


async def test_a_task_that_is_taken_is_refused_politely(agent, plan):
    first, second = await agent.worker(), await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=first)
    answer = await agent.call("task_claim", task_id=plan["a"], agent_id=second)
    assert answer == {"success": False, "already_claimed_by": first}
    # Whether the caller exists does not matter then.
    assert await agent.call("task_claim", task_id=plan["a"], agent_id="ag_nobody") == answer


async def test_claiming_again_is_a_success_with_the_same_fence(agent, plan):
    worker = await agent.worker()
    first = await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    again = await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    assert (again["success"], again["fence"]) == (True, first["fence"])


async def test_calls_of_the_connection_carry_the_fence_and_those_of_others_do_not(team, agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    stranger = await team.agent()
    refusal = await stranger.refusal("checkpoint_add", task_id=plan["a"], type="progress", summary="x")
    assert (refusal["code"], refusal["recoverable"]) == ("CLAIM_LOST", False)
    assert worker in refusal["message"]
    assert (await agent.call("checkpoint_add", task_id=plan["a"], type="progress", summary="x"))["sequence"] == 1


async def test_without_a_binding_the_holder_is_recognised_by_its_id_or_its_fence(team, agent, plan):
    worker = await agent.worker()
    claim = await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    elsewhere = await team.agent()
    await elsewhere.move(plan["a"], "planning", agent_id=worker)
    await elsewhere.move(plan["a"], "in_progress", fence=claim["fence"])
    bystander = await elsewhere.worker("other")
    refusal = await elsewhere.refusal("task_update_status", id=plan["a"], status="paused", agent_id=bystander)
    assert refusal["code"] == "CLAIM_LOST"


async def test_a_wrong_fence_is_refused_even_from_the_holder(agent, plan):
    worker = await agent.worker()
    claim = await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    refusal = await agent.refusal(
        "task_update_status", id=plan["a"], status="planning", agent_id=worker, fence=claim["fence"] - 1
    )
    assert refusal["code"] == "CLAIM_LOST"


async def test_a_task_that_nobody_holds_may_be_changed_by_anybody(agent, plan):
    await agent.finish(plan["a"])
    assert await agent.status(plan["a"]) == "completed"


async def test_a_coordinator_overrides_and_it_is_recorded(team, agent, plan):
    worker, coordinator = await agent.worker(), await agent.coordinator()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    elsewhere = await team.agent()
    await elsewhere.move(plan["a"], "planning", agent_id=coordinator)
    (record,) = (await agent.call("checkpoint_list", task_id=plan["a"]))["checkpoints"]
    assert record["type"] == record["checkpoint_type"] == "decision"
    assert record["detail"] == {"coordinator_id": coordinator, "holder_id": worker, "tool": "task_update_status"}
    assert (await agent.call("task_get", id=plan["a"]))["assigned_agent_id"] == worker


async def test_the_binding_does_not_stand_for_another_agent_that_a_call_names(agent, plan):
    worker, bystander = await agent.worker(), await agent.worker("other")
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    refusal = await agent.refusal("task_update_status", id=plan["a"], status="planning", agent_id=bystander)
    assert refusal["code"] == "CLAIM_LOST"


async def test_for_a_task_that_changed_hands_between_agents_of_a_connection_there_is_no_binding(agent, plan):
    first, second = await agent.worker(), await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=first)
    await agent.call("task_release", task_id=plan["a"], agent_id=first)
    await agent.call("task_claim", task_id=plan["a"], agent_id=second)
    refusal = await agent.refusal("task_update_status", id=plan["a"], status="planning")
    assert refusal["code"] == "CLAIM_LOST"
    await agent.move(plan["a"], "planning", agent_id=second)


async def test_finishing_ends_the_claim_and_the_binding(agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await agent.finish(plan["a"])
    task = await agent.call("task_get", id=plan["a"])
    assert (task["assigned_agent_id"], task["claimed_at"]) == (None, None)
    row = await agent.call("agent_get", id=worker)
    assert (row["status"], row["current_task_id"]) == ("online", None)
    await agent.call("checkpoint_add", task_id=plan["a"], type="complete", summary="afterwards")


async def test_a_failed_task_is_offered_again(agent, make_task):
    workflow, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)
    await agent.move(tasks["a"], "planning", "in_progress", "failed")
    (offered,) = (await agent.call("workflow_next_tasks", workflow_id=workflow))["tasks"]
    assert (offered["id"], offered["status"], offered["error"]) == (tasks["a"], "failed", "broke")
    await agent.move(tasks["a"], "pending")
    assert (await agent.call("task_get", id=tasks["a"]))["error"] is None


async def test_a_release_makes_a_begun_task_pending_and_says_why(agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["b"], agent_id=worker)
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    await agent.move(plan["a"], "planning", "in_progress")
    await agent.call("task_release", task_id=plan["a"], agent_id=worker, reason="too hard")
    task = await agent.call("task_get", id=plan["a"], include_checkpoints=True)
    assert (task["status"], task["assigned_agent_id"]) == ("pending", None)
    assert [(point["type"], point["summary"]) for point in task["checkpoints"]] == [("recovery", "Released: too hard")]
    row = await agent.call("agent_get", id=worker)
    assert (row["status"], row["current_task_id"]) == ("busy", plan["b"])


async def test_after_a_release_the_task_claimed_last_is_the_current_one(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"), make_task("b"), make_task("c"))
    worker = await agent.worker()
    for name in ("b", "a", "c"):
        await agent.call("task_claim", task_id=tasks[name], agent_id=worker)
    await agent.call("task_release", task_id=tasks["c"], agent_id=worker)
    assert (await agent.call("agent_get", id=worker))["current_task_id"] == tasks["a"]


async def test_only_what_is_held_can_be_released(agent, plan):
    worker, bystander = await agent.worker(), await agent.worker()
    refusal = await agent.refusal("task_release", task_id=plan["a"], agent_id=worker)
    assert refusal["code"] == "NOT_CLAIMED"
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    refusal = await agent.refusal("task_release", task_id=plan["a"], agent_id=bystander)
    assert refusal["code"] == "NOT_ASSIGNED"


# Lost leases.


async def test_a_task_taken_over_cannot_be_changed_by_the_one_who_lost_it(team, agent, plan):
    slow, quick = await agent.worker("slow"), await agent.worker("quick")
    await agent.call("task_claim", task_id=plan["a"], agent_id=slow)
    await team.expire(plan["a"])
    elsewhere = await team.agent()
    assert (await elsewhere.call("task_claim", task_id=plan["a"], agent_id=quick))["success"]
    refusal = await agent.refusal("task_update_status", id=plan["a"], status="planning")
    assert refusal["code"] == "CLAIM_LOST"
    assert quick in refusal["message"]
    await elsewhere.finish(plan["a"])


async def test_the_length_of_a_lease_is_a_setting(team, make_task):
    team.project.write(".deepwork/config.yml", "plugins: {settings: {orchestration: {lease_seconds: 60}}}\n")
    agent = await team.agent()
    _, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    assert (await agent.call("agent_heartbeat", agent_id=worker))["next_heartbeat_ms"] == 20_000
    claim = await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)
    task = await agent.call("task_get", id=tasks["a"])
    assert claim["lease_expires_at"] - task["claimed_at"] == 60_000


async def test_claiming_and_finishing_a_task_reads_nothing_of_the_plan_at_large(team, agent, plan):
    worker = await agent.worker()
    async with team.database() as database:
        if database.dialect != "sqlite":
            pytest.skip("PostgreSQL stores nothing that could not be read")
        unreadable = sa.text("UPDATE orchestration_workflows SET initial_plan = 'no JSON'")
        await database.write(lambda transaction: transaction.execute(unreadable) and None)
    assert (await agent.call("task_claim", task_id=plan["a"], agent_id=worker))["success"]
    await agent.finish(plan["a"], agent_id=worker)
    assert await agent.status(plan["a"]) == "completed"


async def test_an_agent_is_offered_what_it_can_do(agent, make_task):
    first, _ = await agent.workflow(
        make_task("python", required_capabilities=["python"], sequence=2),
        make_task("both", required_capabilities=["python", "sql"]),
        make_task("any"),
        make_task("waits", "any"),
    )
    await agent.workflow(make_task("other"), name="second")
    able, general = await agent.worker(capabilities=["python", "go"]), await agent.worker()

    async def offered(agent_id, **more):
        return [task["name"] for task in (await agent.call("task_get_available", agent_id=agent_id, **more))["tasks"]]

    assert await offered(able) == ["any", "other", "python"]
    assert await offered(general) == ["any", "both", "other", "python"]
    assert await offered(general, workflow_id=first, limit=1) == ["any"]
