"""Workspaces, and the worktrees that git makes for them."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_a_workspace_is_registered_as_it_is_said(agent, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"))
    created = await agent.call(
        "workspace_create", workflow_id=workflow_id, path="/elsewhere//w", branch="b", task_ids=[tasks["a"]]
    )
    assert created.keys() == {"id"}
    (workspace,) = (await agent.call("workspace_list", workflow_id=workflow_id))["workspaces"]
    assert (workspace["path"], workspace["status"], workspace["merge_commit"]) == ("/elsewhere/w", "active", None)
    assert (await agent.call("task_get", id=tasks["a"]))["workspace_id"] == created["id"]
    again = await agent.call("workspace_create", workflow_id=workflow_id, path="/elsewhere/w", branch="b")
    assert created["id"] in again["warnings"][0]
    refusal = await agent.refusal("workspace_create", workflow_id=workflow_id, branch="b")
    assert refusal["code"] == "MISSING_PATH"


async def test_it_is_stored_whole_or_not_at_all(agent, make_task):
    workflow_id, _ = await agent.workflow(make_task("a"))
    _, foreign_tasks = await agent.workflow(make_task("b"))
    for task_ids, code in (([foreign_tasks["b"]], "WORKFLOW_MISMATCH"), (["tk_x"], "TASK_NOT_FOUND")):
        arguments = {"workflow_id": workflow_id, "path": "/w", "branch": "b", "task_ids": task_ids}
        assert (await agent.refusal("workspace_create", **arguments))["code"] == code
    assert (await agent.call("workspace_list", workflow_id=workflow_id))["workspaces"] == []


async def test_a_merged_workspace_has_a_commit_and_is_final(agent, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"))
    workspace_id = (await agent.call("workspace_create", workflow_id=workflow_id, path="/w", branch="b"))["id"]
    refusal = await agent.refusal("workspace_update", id=workspace_id, status="merged")
    assert refusal["code"] == "MISSING_MERGE_COMMIT"
    await agent.call("workspace_update", id=workspace_id, status="abandoned")
    refusal = await agent.refusal("task_assign_workspace", task_id=tasks["a"], workspace_id=workspace_id)
    assert refusal["code"] == "INVALID_STATE"
    refusal = await agent.refusal("workspace_update", id=workspace_id, status="active", merge_commit="abc")
    assert (refusal["code"], "not the full id of a commit" in refusal["message"]) == ("INVALID_INPUT", True)
    await agent.call("workspace_update", id=workspace_id, status="active", merge_commit=40 * "a")
    await agent.call("task_assign_workspace", task_id=tasks["a"], workspace_id=workspace_id)
    await agent.call("workspace_update", id=workspace_id, status="merged")
    refusal = await agent.refusal("workspace_update", id=workspace_id, status="active")
    assert refusal["code"] == "INVALID_TRANSITION"
    _, foreign_tasks = await agent.workflow(make_task("b"))
    refusal = await agent.refusal("task_assign_workspace", task_id=foreign_tasks["b"], workspace_id=workspace_id)
    assert refusal["code"] == "WORKFLOW_MISMATCH"
