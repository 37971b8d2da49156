"""Agents, what each is offered, and their messages."""

from __future__ import annotations

import json

import pytest

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


async def test_an_update_merges_metadata_and_null_clears_the_task(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker(metadata={"a": 1})
    await agent.call("agent_update", id=worker, current_task_id=tasks["a"], metadata={"b": 2}, status=None)
    shown = await agent.call("agent_get", id=worker)
    assert (shown["current_task_id"], shown["metadata"]) == (tasks["a"], {"a": 1, "b": 2})
    await agent.call("agent_update", id=worker, workspace_path="/w")
    assert (await agent.call("agent_get", id=worker))["current_task_id"] == tasks["a"]
    await agent.call("agent_update", id=worker, current_task_id=None)
    assert (await agent.call("agent_get", id=worker))["current_task_id"] is None


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


async def test_what_a_person_must_do_is_done_by_no_tool_whatever_an_agent_says_of_itself(agent, make_task):
    _, tasks = await agent.workflow(make_task("sign", required_capabilities=["human"]))
    robot, able = await agent.worker(), await agent.worker(capabilities=["human"])
    liar = await agent.worker(metadata={"human": True})
    coordinator = await agent.worker(role="coordinator", metadata={"human": True})
    for other in (robot, able, liar, coordinator):
        assert (await agent.call("task_get_available", agent_id=other))["tasks"] == []
        refusal = await agent.refusal("task_claim", task_id=tasks["sign"], agent_id=other)
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


@pytest.fixture
async def three(agent):
    """Two workers and a coordinator."""
    return [await agent.worker("a"), await agent.worker("b"), await agent.coordinator("c")]


async def send(agent, sender, recipient, **more):
    arguments = {"message_type": "query", "body": "hello", **more}
    return await agent.call("message_send", sender_id=sender, recipient_id=recipient, **arguments)


async def inbox(agent, agent_id, **more):
    return (await agent.call("message_list", agent_id=agent_id, **more))["messages"]


async def test_a_reply_joins_the_thread_and_a_thread_shows_what_was_sent_too(agent, three):
    first, second, third = three
    sent = await send(agent, first, second, body={"q": [1, 2]}, subject="s", priority="urgent")
    reply = await send(agent, second, first, message_type="response", reply_to_id=sent["id"])
    assert reply["thread_id"] == sent["thread_id"]
    assert [message["id"] for message in await inbox(agent, first)] == [reply["id"]]
    thread = await inbox(agent, first, thread_id=sent["thread_id"])
    assert [message["id"] for message in thread] == [reply["id"], sent["id"]]
    assert thread[1]["body"] == {"q": [1, 2]}
    assert await inbox(agent, third, thread_id=sent["thread_id"]) == []


async def test_messages_are_unread_then_read_then_archived(agent, three):
    first, second, _ = three
    one, two = [(await send(agent, first, second))["id"] for _ in range(2)]
    assert [message["status"] for message in await inbox(agent, second)] == [
        "unread",
        "unread",
    ]  # listing reads nothing
    assert (await agent.call("message_get", id=one, mark_read=False))["status"] == "unread"
    read = await agent.call("message_get", id=one)
    assert read["status"] == "read"
    assert read["read_at"] >= read["created_at"]
    assert [message["id"] for message in await inbox(agent, second)] == [two]
    await agent.call("message_archive", message_ids=[one, two, "msg_unknown"])
    await agent.call("message_mark_read", message_ids=[one, two])
    assert {message["status"] for message in await inbox(agent, second, status="all")} == {"archived"}
    assert await agent.call("message_archive", message_ids=[]) == {"success": True}


async def test_filters_and_counts(agent, three, make_task):
    first, second, _ = three
    workflow_id, tasks = await agent.workflow(make_task("a"))
    plain = await send(agent, first, second)
    about = await send(agent, first, second, priority="high", workflow_id=workflow_id, task_id=tasks["a"])
    assert [message["id"] for message in await inbox(agent, second, priority=["high"])] == [about["id"]]
    assert [message["id"] for message in await inbox(agent, second, workflow_id=workflow_id)] == [about["id"]]
    assert await inbox(agent, second, message_type=["response"]) == []
    count = await agent.call("message_count_unread", agent_id=second)
    assert count == {"count": 2, "by_priority": {"normal": 1, "high": 1}}
    assert (await agent.call("message_count_unread", agent_id=second, priority=["high"]))["count"] == 1
    answer = await agent.call("message_list", agent_id=second, limit=1)
    assert (len(answer["messages"]), answer["unread_count"]) == (1, 2)
    at = (await agent.call("message_get", id=plain["id"]))["created_at"]
    assert len(await inbox(agent, second, status="all", since=at - 1)) == 2
    assert len(await inbox(agent, second, status="all", since=at // 1000 - 1)) == 2  # in seconds
    assert await inbox(agent, second, status="all", since=at + 3_600_000) == []


async def test_a_broadcast_is_one_thread_to_all_others_that_fit(agent, three):
    first, second, third = three
    answer = await agent.call("message_broadcast", sender_id=first, message_type="broadcast", body="all")
    assert answer["sent_count"] == 2
    received = [(await inbox(agent, other))[0] for other in (second, third)]
    assert {message["thread_id"] for message in received} == {received[0]["thread_id"]}
    assert {message["message_type"] for message in received} == {"notification"}
    arguments = {"sender_id": first, "message_type": "status_update", "body": "x"}
    some = await agent.call("message_broadcast", recipient_filter={"role": "coordinator"}, **arguments)
    assert some["sent_count"] == 1
    none = await agent.call("message_broadcast", recipient_filter={"runtime": "codex", "status": None}, **arguments)
    assert none == {"sent_count": 0, "message_ids": []}


async def test_an_expired_message_is_neither_listed_nor_counted(team, agent, three):
    import sqlalchemy as sa

    from deepwork_orchestration import tables as t

    first, second, _ = three
    message = await send(agent, first, second, expires_in=60)
    assert len(await inbox(agent, second)) == 1
    change = sa.update(t.messages).values(expires_at=t.messages.c.created_at)
    async with team.database() as database:
        await database.write(lambda transaction: transaction.execute(change) and None)
    assert await inbox(agent, second) == []
    assert await inbox(agent, second, thread_id=message["thread_id"]) == []
    assert (await agent.call("message_count_unread", agent_id=second))["count"] == 0


async def test_what_happens_is_told_to_the_feed(team, agent, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    await agent.call("task_claim", task_id=tasks["a"], agent_id=worker)
    await agent.finish(tasks["a"])
    await agent.call("checkpoint_add", task_id=tasks["a"], type="complete", summary="x")
    await send(agent, worker, worker)
    workspace = await agent.call("workspace_create", workflow_id=workflow_id, path="/w", branch="b")
    await agent.call("workspace_update", id=workspace["id"], status="abandoned")
    await agent.call("template_create", name="t", from_workflow_id=workflow_id)
    await agent.call("task_claim", task_id=(await agent.workflow(make_task("b")))[1]["b"], agent_id=worker)
    await agent.call("agent_update", id=worker, metadata={"a": 1})
    await agent.call("agent_unregister", id=worker)
    names = [name for name, _ in await team.events()]
    assert set(names) == {
        "workflow:created", "workflow:updated", "task:updated", "task:claimed", "task:released", "checkpoint:added",
        "agent:registered", "agent:updated", "agent:offline", "message:sent", "workspace:created", "workspace:updated",
        "template:created",
    }  # fmt: skip
    statuses = [data["status"] for name, data in await team.events("task:updated") if data["id"] == tasks["a"]]
    assert statuses == ["planning", "in_progress", "completed"]
