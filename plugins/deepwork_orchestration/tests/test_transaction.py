"""What a call changes is told to the feed, in the transaction of the call."""

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
