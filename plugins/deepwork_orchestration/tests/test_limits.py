"""What is stored has limits, and what an older version has stored above them is still read and completed."""

from __future__ import annotations

import pytest

from deepwork_orchestration.sql import sql

pytestmark = pytest.mark.anyio

MIB = 2**20


async def test_what_is_stored_above_a_limit_can_be_read_and_completed(agent, team, make_task):
    workflow_id, tasks = await agent.workflow(make_task("large"), make_task("next", "large"))
    texts = {"description": "d" * 3 * MIB, "context": {"a": "c" * 2 * MIB}}
    plan = {"initial_plan": {"summary": "p" * 9 * MIB}, "config": {"a": "c" * 2 * MIB}}
    statements = [
        (
            sql("UPDATE orchestration_tasks SET description = :description, context = :context WHERE name = 'large'"),
            texts,
        ),
        (sql("UPDATE orchestration_workflows SET initial_plan = :initial_plan, config = :config"), plan),
    ]
    async with team.database() as database:
        for statement, values in statements:
            await database.write(lambda transaction, s=statement, v=values: transaction.run(s, **v))
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
    """Names and ids of lost tasks are cut, so that they can be stored and told."""
    worker, coordinator = await agent.worker(), await agent.coordinator()
    many = [make_task("x" * 190 + f"{number:04}") for number in range(1100)]
    _, tasks = await agent.workflow(*many)
    async with team.database() as database:
        claimed = sql("UPDATE orchestration_tasks SET assigned_agent_id = :id, fence = 1, claimed_at = sequence")
        await database.write(lambda transaction: transaction.run(claimed, id=worker))
    last = tasks["x" * 190 + "1099"]
    async with team.database() as database:
        freed = sql("UPDATE orchestration_tasks SET assigned_agent_id = NULL, fence = NULL WHERE id = :id")
        await database.write(lambda transaction: transaction.run(freed, id=last))
    await agent.call("task_claim", task_id=last, agent_id=worker)
    await team.expire(last)
    assert (await agent.call("agent_get", id=worker))["status"] == "offline"
    [message] = (await agent.call("message_list", agent_id=coordinator))["messages"]
    assert message["body"].endswith(" and 1,080 more.")
    refusal = await agent.refusal("agent_heartbeat", agent_id=worker)
    assert refusal["message"].endswith(" and 980 more")


@pytest.fixture
def short_answers(monkeypatch):
    """Let an answer have room for 1,000 characters, and an entry for three names."""
    monkeypatch.setattr("deepwork_orchestration.limits.MAX_ANSWER", 1000)
    monkeypatch.setattr("deepwork_orchestration.limits.MAX_NAMES", 3)
    monkeypatch.setattr("deepwork_orchestration.limits.LEAST_NAMES", 3)


@pytest.mark.usefixtures("short_answers")
async def test_lists_are_cut_to_what_an_answer_has_room_for_and_say_how_much_is_left_out(agent, make_task):
    """The first entries of each list are given, one at least, and the rest is counted."""
    long = "x" * 400
    group = [{**make_task(f"t{number}", parallel_group="g"), "description": long} for number in range(6)]
    last = make_task("last", *(f"t{number}" for number in range(6)))
    workflow_id, _ = await agent.workflow(*group, last)
    plain = await agent.call("workflow_get", id=workflow_id, include_tasks=True, include_task_summaries=False)
    tasks = {listed["name"]: listed["id"] for listed in plain["tasks"]}
    assert ([*tasks], "tasks_omitted" in plain) == (["last", *(f"t{number}" for number in range(6))], False)

    async def cut(tool, name, **arguments):
        answer = await agent.call(tool, **arguments)
        return len(answer[name]), answer[f"{name}_omitted"]

    assert await cut("workflow_get", "tasks", id=workflow_id, include_tasks=True) == (3, 4)
    assert await cut("workflow_next_tasks", "tasks", workflow_id=workflow_id) == (2, 4)
    worker, recipient = await agent.worker("w", metadata={"m": long}), await agent.worker("r", metadata={"m": long})
    assert await cut("task_get_available", "tasks", agent_id=worker) == (2, 4)
    assert await cut("task_get_available", "tasks", agent_id=worker, limit=3) == (2, 1)
    for number in range(5):
        message = {"sender_id": worker, "recipient_id": recipient, "message_type": "query", "body": f"{number}{long}"}
        await agent.call("message_send", **message)
        await agent.call("checkpoint_add", task_id=tasks["t0"], type="progress", summary=f"{number}{long}")
        await agent.call("template_create", name=f"{number}", description=long, from_workflow_id=workflow_id)
    await agent.worker("c", metadata={"m": "x" * 5000})
    cuts = [
        await cut("agent_list", "agents"),
        await cut("message_list", "messages", agent_id=recipient),
        await cut("template_list", "templates"),
        await cut("checkpoint_list", "checkpoints", task_id=tasks["t0"]),
        await cut("task_get", "checkpoints", id=tasks["t0"], include_checkpoints=True),
    ]
    assert cuts == [(2, 1), (2, 3), (1, 4), (2, 3), (2, 3)]
    newest = (await agent.call("task_get", id=tasks["t0"], include_checkpoints=True))["checkpoints"]
    assert [checkpoint["summary"][0] for checkpoint in newest] == ["3", "4"]
    [first, _] = (await agent.call("workflow_next_tasks", workflow_id=workflow_id))["tasks"]
    assert (len(first["parallel_with"]), first["parallel_with_omitted"]) == (3, 2)
    [blocked] = (await agent.call("workflow_progress", workflow_id=workflow_id))["blocked_tasks"]
    assert (blocked["blocked_by"], blocked["blocked_by_omitted"]) == (["t0", "t1", "t2"], 3)
    for number in range(6):
        await agent.move(tasks[f"t{number}"], "planning", "in_progress")
        await agent.call("task_update_status", id=tasks[f"t{number}"], status="completed", outcome=long)
    checked = await agent.call("task_check_dependencies", task_id=tasks["last"])
    assert (checked["satisfied"], len(checked["completed"])) == (True, 6)
    assert {needed["outcome"] for needed in checked["completed"]} == {"x" * 166 + "\n... [truncated]"}


async def test_a_broadcast_stores_no_more_than_others_can_wait_for(agent):
    sender, *_ = [await agent.worker(f"a{number}") for number in range(34)]
    message = {"sender_id": sender, "message_type": "notification"}
    refusal = await agent.refusal("message_broadcast", **message, body="x" * (MIB - 10))
    assert refusal["message"].startswith("body goes to 34 agents, and has 35,651")
    assert (await agent.call("message_broadcast", **message, body="short"))["sent_count"] == 33
