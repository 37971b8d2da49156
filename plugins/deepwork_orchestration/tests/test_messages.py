"""Messages between agents: threads, states, filters, broadcasts and expiry."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


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
    first_message, second_message = [(await send(agent, first, second))["id"] for _ in range(2)]
    assert [message["status"] for message in await inbox(agent, second)] == [
        "unread",
        "unread",
    ]  # listing reads nothing
    assert (await agent.call("message_get", id=first_message, mark_read=False))["status"] == "unread"
    read = await agent.call("message_get", id=first_message)
    assert read["status"] == "read"
    assert read["read_at"] >= read["created_at"]
    assert [message["id"] for message in await inbox(agent, second)] == [second_message]
    await agent.call("message_archive", message_ids=[first_message, second_message, "msg_unknown"])
    await agent.call("message_mark_read", message_ids=[first_message, second_message])
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
    received = [(await inbox(agent, recipient))[0] for recipient in (second, third)]
    assert {message["thread_id"] for message in received} == {received[0]["thread_id"]}
    assert {message["message_type"] for message in received} == {"notification"}
    arguments = {"sender_id": first, "message_type": "status_update", "body": "x"}
    some = await agent.call("message_broadcast", recipient_filter={"role": "coordinator"}, **arguments)
    assert some["sent_count"] == 1
    none = await agent.call("message_broadcast", recipient_filter={"runtime": "codex", "status": None}, **arguments)
    assert none == {"sent_count": 0, "message_ids": []}


async def test_an_expired_message_is_neither_listed_nor_counted(team, agent, three):
    import sqlalchemy as sa

    first, second, _ = three
    message = await send(agent, first, second, expires_in=60)
    assert len(await inbox(agent, second)) == 1
    change = sa.text("UPDATE orchestration_messages SET expires_at = created_at")
    async with team.database() as database:
        await database.write(lambda transaction: transaction.execute(change) and None)
    assert await inbox(agent, second) == []
    assert await inbox(agent, second, thread_id=message["thread_id"]) == []
    assert (await agent.call("message_count_unread", agent_id=second))["count"] == 0
