"""What an earlier release has tracked goes on in this one, on both engines."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.anyio


async def test_tracking_goes_on_where_it_was(old_state, old_database):
    ids = old_state.cases[old_database]
    async with old_state.project.agent(tools=["tracking"]) as agent:
        sections = ["phase_summary", "tasks", "decisions", "milestones", "blockers"]
        context = await agent.call("get_context", workflow_id=ids["tracked"], include=sections)
        assert {task["name"]: task["status"] for task in context["tasks"]} == {
            "first": "SUCCESS", "second": "IN_PROGRESS",
        }  # fmt: skip
        assert [blocker["description"] for blocker in context["blockers"]] == ["No access"]
        outcome = {"summary": "done"}
        await agent.call("complete_task", task_id=ids["tracked task"], status="success", outcome=outcome)
        await agent.call("complete_phase", phase_id=ids["phase"], status="completed", summary="read")
        await agent.call("complete_workflow", workflow_id=ids["tracked"], status="completed", summary="known")


def test_commands_show_what_was_tracked(old_state, old_database):
    command = [sys.executable, "-m", "deepwork", "track", "show", old_state.cases[old_database]["tracked"]]
    ended = subprocess.run(command, cwd=old_state.project.root, capture_output=True, text=True, env={**os.environ})
    assert "No access" in ended.stdout, ended.stderr
