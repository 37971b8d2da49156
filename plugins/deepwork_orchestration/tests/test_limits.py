"""What is stored has limits, and what an older version has stored above them is still read and completed."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from deepwork_orchestration import tables as t

pytestmark = pytest.mark.anyio

MIB = 2**20


async def test_what_is_stored_above_a_limit_can_be_read_and_completed(agent, team, make_task):
    workflow_id, tasks = await agent.workflow(make_task("large"), make_task("next", "large"))
    texts = {"description": "d" * 3 * MIB, "context": {"a": "c" * 2 * MIB}}
    plan = {"initial_plan": {"summary": "p" * 9 * MIB}, "config": {"a": "c" * 2 * MIB}}
    statements = [
        sa.update(t.tasks).where(t.tasks.c.name == "large").values(**texts),
        sa.update(t.workflows).values(**plan),
    ]
    async with team.database() as database:
        for statement in statements:
            await database.write(lambda transaction, s=statement: transaction.execute(s) and None)
    assert len((await agent.call("task_get", id=tasks["large"]))["description"]) == 3 * MIB
    worker = await agent.worker()
    await agent.call("task_claim", task_id=tasks["large"], agent_id=worker)
    assert "truncated" in await agent.call("task_load_context", task_id=tasks["large"])
    await agent.finish(tasks["large"])
    await agent.finish(tasks["next"])
    await agent.call("workflow_update_status", id=workflow_id, status="completed")
    assert (await agent.call("workflow_get", id=workflow_id))["status"] == "completed"


async def test_what_is_merged_is_held_to_the_limit_too(agent):
    worker = await agent.worker(metadata={"a": "x" * 900_000})
    refusal = await agent.refusal("agent_update", id=worker, metadata={"b": "x" * 900_000})
    assert refusal["message"].startswith("metadata may have 1,048,576 bytes")
    assert list((await agent.call("agent_get", id=worker))["metadata"]) == ["a"]


async def test_an_agent_that_loses_thousands_of_tasks_stops_nobody(agent, team, make_task):
    """Names and ids of what was lost are cut, so that they can be stored and told."""
    worker, coordinator = await agent.worker(), await agent.coordinator()
    many = [make_task("x" * 190 + f"{number:04}") for number in range(1100)]
    _, tasks = await agent.workflow(*many)
    async with team.database() as database:
        claimed = sa.update(t.tasks).values(assigned_agent_id=worker, fence=1, claimed_at=t.tasks.c.sequence)
        await database.write(lambda transaction: transaction.execute(claimed) and None)
    last = tasks["x" * 190 + "1099"]
    async with team.database() as database:
        freed = sa.update(t.tasks).where(t.tasks.c.id == last).values(assigned_agent_id=None, fence=None)
        await database.write(lambda transaction: transaction.execute(freed) and None)
    await agent.call("task_claim", task_id=last, agent_id=worker)
    await team.expire(last)
    assert (await agent.call("agent_get", id=worker))["status"] == "offline"
    [message] = (await agent.call("message_list", agent_id=coordinator))["messages"]
    assert message["body"].endswith(" and 1,080 more.")
    refusal = await agent.refusal("agent_heartbeat", agent_id=worker)
    assert refusal["message"].endswith(" and 980 more")
