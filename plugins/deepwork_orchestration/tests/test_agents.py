"""Agents: how they register, in whose name a call acts, and how calls renew their leases."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

pytestmark = pytest.mark.anyio


async def test_agents_are_listed_oldest_first_with_real_objects(agent):
    first = await agent.worker("one", capabilities=["python"], metadata={"a": {"b": 1}}, workspace_path="/x/../w/")
    second = await agent.coordinator("two")
    agents = (await agent.call("agent_list"))["agents"]
    assert [row["id"] for row in agents] == [first, second]
    assert (agents[0]["capabilities"], agents[0]["metadata"], agents[0]["status"]) == (
        ["python"],
        {"a": {"b": 1}},
        "online",
    )
    assert agents[0]["workspace_path"] == "/w"
    assert (await agent.call("agent_get", id=second))["role"] == "coordinator"
    assert [row["id"] for row in (await agent.call("agent_list", role="coordinator"))["agents"]] == [second]
    assert (await agent.call("agent_list", status=[]))["agents"] == []
    assert (await agent.call("agent_list", runtime="codex"))["agents"] == []


async def test_what_a_person_must_do_is_done_by_no_tool_whatever_an_agent_says_of_itself(agent, make_task):
    _, tasks = await agent.workflow(make_task("sign", required_capabilities=["human"]))
    robot, able = await agent.worker(), await agent.worker(capabilities=["human"])
    liar = await agent.worker(metadata={"human": True})
    coordinator = await agent.worker(role="coordinator", metadata={"human": True})
    for agent_id in (robot, able, liar, coordinator):
        assert (await agent.call("task_get_available", agent_id=agent_id))["tasks"] == []
        refusal = await agent.refusal("task_claim", task_id=tasks["sign"], agent_id=agent_id)
        assert (refusal["code"], "is for a person" in refusal["message"]) == ("INVALID_STATE", True)
        assert "metadata" not in json.dumps(refusal)
    for caller in ({}, {"agent_id": liar}, {"agent_id": coordinator}):
        for status in ("planning", "failed"):
            more = {"error": "no"} if status == "failed" else {}
            refusal = await agent.refusal("task_update_status", id=tasks["sign"], status=status, **more, **caller)
            assert "is for a person" in refusal["message"]
    assert await agent.status(tasks["sign"]) == "pending"


async def test_no_agent_takes_the_name_of_a_person(agent):
    refusal = await agent.refusal("agent_register", name="person:local", runtime="custom")
    assert "is a name of a person" in refusal["message"]


async def test_any_call_of_the_agent_renews_all_its_leases(team, agent, plan):
    worker = await agent.worker()
    for name in ("a", "b"):
        await agent.call("task_claim", task_id=plan[name], agent_id=worker)
    workflow_id = (await agent.call("task_get", id=plan["a"]))["workflow_id"]
    workspace = (await agent.call("workspace_create", workflow_id=workflow_id, path="/w", branch="w"))["id"]
    for tool, arguments in (
        ("task_get_available", {"agent_id": worker}),
        ("message_list", {"agent_id": worker}),
        ("task_get", {"id": plan["a"]}),
        ("task_load_context", {"task_id": plan["a"]}),
        ("agent_heartbeat", {"agent_id": worker}),
        ("checkpoint_add", {"task_id": plan["a"], "type": "progress", "summary": "x"}),
        ("task_assign_workspace", {"task_id": plan["a"], "workspace_id": workspace}),
    ):
        before = await _shorten(team, plan.values())
        await agent.call(tool, **arguments)
        after = await _leases(team)
        assert {item: until > before for item, until in after.items()} == dict.fromkeys(after, True), tool


async def _shorten(team, task_ids):
    """Let leases run out in half of their time, and say when."""

    from deepwork_sql.tables import leases

    async with team.database() as database:

        def change(transaction):
            until = transaction.now + 300_000
            transaction.execute(sa.update(leases).values(expires_at=until))
            return until

        return await database.write(change)


async def _leases(team):

    from deepwork_sql.tables import leases

    async with team.database() as database:
        query = sa.select(leases.c.item, leases.c.expires_at)
        return await database.read(lambda transaction: dict(transaction.execute(query).all()))


async def test_observing_an_agent_does_not_renew_its_leases(team, agent, plan):
    worker = await agent.worker()
    await agent.call("task_claim", task_id=plan["a"], agent_id=worker)
    before = await _shorten(team, plan.values())
    observer = await team.agent()
    await observer.call("agent_get", id=worker)
    await observer.call("task_get", id=plan["a"])
    assert set((await _leases(team)).values()) == {before}


async def test_a_heartbeat_says_when_the_next_is_due_and_what_it_works_on_is_no_claim(agent, plan):
    worker = await agent.worker()
    answer = await agent.call("agent_heartbeat", agent_id=worker, current_task_id=plan["a"], status="busy")
    assert answer == {"success": True, "next_heartbeat_ms": 30_000}
    worker_row = await agent.call("agent_get", id=worker)
    assert (worker_row["status"], worker_row["current_task_id"]) == ("busy", plan["a"])
    assert (await agent.call("task_get", id=plan["a"]))["assigned_agent_id"] is None
