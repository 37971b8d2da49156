"""Plans that an earlier release has stored go on in this one, on both engines."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.anyio


async def test_a_plan_goes_on_where_it_was(old_state, old_database):
    ids = old_state.cases[old_database]

    def who(task):
        return {"task_id": ids[task], "agent_id": ids["worker"]}

    async with old_state.project.agent(tools=["orchestration"]) as agent:
        tasks = (await agent.call("workflow_get", id=ids["plan"], include_tasks=True))["tasks"]
        assert {task["name"]: task["status"] for task in tasks} == {
            "print": "completed", "bind": "pending", "sell": "blocked", "sign": "pending",
        }  # fmt: skip
        context = await agent.text("task_load_context", task_id=ids["bind"])
        assert "Linen" in context
        # Nobody has heard of the agent since, so it has lost its task, and claims it again.
        await agent.call("agent_update", id=ids["worker"], status="online")
        claimed = {"agent_id": ids["worker"], "fence": (await agent.call("task_claim", **who("bind")))["fence"]}
        for status, more in (("planning", {}), ("in_progress", {}), ("completed", {"outcome": "Bound."})):
            await agent.call("task_update_status", id=ids["bind"], status=status, **claimed, **more)
        available = await agent.call("task_get_available", agent_id=ids["worker"])
        assert [task["name"] for task in available["tasks"]] == ["sell"]
        await agent.call("task_claim", **who("sell"))
        messages = (await agent.call("message_list", agent_id=ids["worker"], status="unread"))["messages"]
        assert {message["body"] for message in messages} == {"Use linen.", "We print today."}
        [template] = (await agent.call("template_list"))["templates"]
        assert (await agent.call("template_apply", template_id=template["id"], workflow_name="again"))["workflow_id"]


def test_commands_show_the_plan(old_state, old_database):
    ids = old_state.cases[old_database]
    for arguments, text in ((["show", ids["plan"]], "1 of 4 tasks done"), (["agents"], "ada"), (["messages"], "linen")):
        command = [sys.executable, "-m", "deepwork", "plan", *arguments]
        ended = subprocess.run(command, cwd=old_state.project.root, capture_output=True, text=True, env={**os.environ})
        assert text in ended.stdout, ended.stderr
