"""Arguments: strict types in the server's words, everything else as an error that an agent can read."""

from __future__ import annotations

import json

import pytest

from deepwork_orchestration.errors import RECOVERABLE

pytestmark = pytest.mark.anyio

MESSAGE = {"sender_id": "a", "recipient_id": "b", "message_type": "query", "body": ""}
WORKFLOW = {"name": "w", "source_type": "prompt", "source_content": "x"}


WRONG_SHAPES = [
    ("workflow_create", {**WORKFLOW, "max_parallel_tasks": "5"}, "max_parallel_tasks"),
    ("workflow_create", {**WORKFLOW, "max_parallel_tasks": True}, "max_parallel_tasks"),
    ("workflow_create", {**WORKFLOW, "auto_create_workspaces": 1}, "auto_create_workspaces"),
    ("workflow_create", {**WORKFLOW, "auto_create_workspaces": "true"}, "auto_create_workspaces"),
    ("workflow_create", {**WORKFLOW, "name": 5}, "name"),
    ("workflow_create", {**WORKFLOW, "source_type": "template"}, "source_type"),
    ("workflow_create", {**WORKFLOW, "colour": "red"}, "colour"),
    ("workflow_create", {"name": "w"}, "source_type"),
    ("workflow_get", {"id": None}, "id"),
    ("task_set_plan", {"id": "x", "plan": {"approach": "a"}}, "plan.steps: is required"),
    ("task_set_plan", {"id": "x", "plan": {"approach": "a", "steps": [], "x": 1}}, "plan.x: is not a key of"),
    ("task_load_context", {"task_id": "x", "include": {"prior": True}}, "include.prior"),
    ("task_load_context", {"task_id": "x", "include": {"workflow_plan": 1}}, "include.workflow_plan"),
    ("task_load_context", {"task_id": "x", "include": "{}"}, "include"),
    ("message_list", {"agent_id": "x", "since": "yesterday"}, "since"),
    ("checkpoint_add", {"task_id": "x", "type": "plan", "summary": "s", "files_changed": [1]}, "files_changed"),
    ("checkpoint_add", {"task_id": "x", "type": "plan", "summary": "s", "fence": "1"}, "fence"),
    ("agent_register", {"name": "a", "runtime": "emacs"}, "runtime"),
]


async def test_a_wrong_shape_is_refused_in_the_servers_words(agent):
    for tool, arguments, field in WRONG_SHAPES:
        text = await agent.refused(tool, **arguments)
        assert text.startswith(f"{tool}: wrong arguments; nothing was changed\n{field}"), (tool, arguments)


OUT_OF_RANGE = [
    ("workflow_create", {**WORKFLOW, "name": ""}, "name must have 1 to 200 characters, not 0"),
    ("workflow_create", {**WORKFLOW, "name": "x" * 201}, "not 201"),
    ("workflow_create", {**WORKFLOW, "max_parallel_tasks": 0}, "max_parallel_tasks must be 1 to 1,000, not 0"),
    ("workflow_create", {**WORKFLOW, "max_parallel_tasks": 1001}, "not 1001"),
    ("workflow_create", {**WORKFLOW, "source_content": "é" * 524_289}, "source_content may have 1,048,576 bytes"),
    ("workflow_create", {**WORKFLOW, "repository_path": "src"}, "repository_path must be absolute, not 'src'"),
    ("agent_register", {"name": "a", "runtime": "custom", "workspace_path": "w"}, "workspace_path must be absolute"),
    ("workflow_create", {**WORKFLOW, "source_ref": "a\0b"}, "source_ref"),
    ("workflow_list", {"limit": 0}, "limit must be 1 to 1,000"),
    ("workflow_list", {"limit": 1001}, "limit"),
    ("workflow_list", {"offset": -1}, "offset must be 0 to"),
    ("workflow_list", {"offset": 10**30}, "offset"),
    ("task_load_context", {"task_id": "x", "max_tokens": 0}, "max_tokens"),
    ("repository_get", {"path": "./x"}, "must be absolute"),
    ("repository_register", {"path": "/x", "name": ""}, "name"),
    ("agent_register", {"name": "a", "runtime": "custom", "metadata": {"x": "y" * 2**20}}, "metadata may have"),
    ("agent_register", {"name": "a", "runtime": "custom", "metadata": {"x\0": 1}}, "metadata"),
    ("message_send", {**MESSAGE, "expires_in": 0}, "expires_in must be 1 to 31,536,000"),
]


async def test_a_value_out_of_range_is_invalid_input_and_names_its_field(agent):
    for tool, arguments, words in OUT_OF_RANGE:
        refusal = await agent.refusal(tool, **arguments)
        assert refusal.keys() == {"code", "message", "recoverable"} | refusal.keys() & {"suggestion"}
        assert (refusal["code"], refusal["recoverable"]) == ("INVALID_INPUT", True), (tool, arguments)
        assert words in refusal["message"]


async def test_a_plan_has_bounds_too(agent, make_task):
    workflow_id = (await agent.call("workflow_create", **WORKFLOW))["id"]
    plan = {"summary": "s", "approach": "a"}
    refusal = await agent.refusal(
        "workflow_set_plan", id=workflow_id, plan={**plan, "tasks": [make_task("a", sequence=0)]}
    )
    assert (refusal["code"], "sequence must be 1" in refusal["message"]) == ("INVALID_INPUT", True)
    many = [make_task(f"t{number}") for number in range(5001)]
    refusal = await agent.refusal("workflow_set_plan", id=workflow_id, plan={**plan, "tasks": many})
    assert (refusal["code"], "5,001" in refusal["message"]) == ("INVALID_INPUT", True)


UNKNOWN = [
    ("workflow_get", {"id": "wf_x"}, "WORKFLOW_NOT_FOUND"),
    ("workflow_progress", {"workflow_id": "wf_x"}, "WORKFLOW_NOT_FOUND"),
    ("workspace_list", {"workflow_id": "wf_x"}, "WORKFLOW_NOT_FOUND"),
    ("workspace_create", {"workflow_id": "wf_x", "path": "/x", "branch": "b"}, "WORKFLOW_NOT_FOUND"),
    ("task_get", {"id": "tk_x"}, "TASK_NOT_FOUND"),
    ("checkpoint_list", {"task_id": "tk_x"}, "TASK_NOT_FOUND"),
    ("checkpoint_add", {"task_id": "tk_x", "type": "plan", "summary": "x"}, "TASK_NOT_FOUND"),
    ("task_claim", {"task_id": "tk_x", "agent_id": "ag_x"}, "TASK_NOT_FOUND"),
    ("task_load_context", {"task_id": "tk_x"}, "TASK_NOT_FOUND"),
    ("task_get_available", {"agent_id": "ag_x"}, "AGENT_NOT_FOUND"),
    ("agent_get", {"id": "ag_x"}, "AGENT_NOT_FOUND"),
    ("agent_heartbeat", {"agent_id": "ag_x"}, "AGENT_NOT_FOUND"),
    ("agent_unregister", {"id": "ag_x"}, "AGENT_NOT_FOUND"),
    ("message_list", {"agent_id": "ag_x"}, "AGENT_NOT_FOUND"),
    ("message_count_unread", {"agent_id": "ag_x"}, "AGENT_NOT_FOUND"),
    ("message_get", {"id": "msg_x"}, "MESSAGE_NOT_FOUND"),
    ("message_broadcast", {"sender_id": "ag_x", "message_type": "notification", "body": ""}, "SENDER_NOT_FOUND"),
    ("workspace_update", {"id": "ws_x"}, "WORKSPACE_NOT_FOUND"),
    ("template_apply", {"template_id": "tmpl_x", "workflow_name": "w"}, "TEMPLATE_NOT_FOUND"),
    ("template_create", {"name": "t", "from_workflow_id": "wf_x"}, "WORKFLOW_NOT_FOUND"),
]


async def test_an_unknown_id_is_never_an_internal_error_and_the_way_on_is_named(agent, make_task):
    for tool, arguments, code in UNKNOWN:
        refusal = await agent.refusal(tool, **arguments)
        assert (refusal["code"], refusal["recoverable"]) == (code, RECOVERABLE[code]), tool
        assert refusal["suggestion"]
    worker = await agent.worker()
    _, tasks = await agent.workflow(make_task("a"))
    message = {"message_type": "query", "body": "x"}
    for arguments, code in (
        ({"sender_id": worker, "recipient_id": "ag_x"}, "RECIPIENT_NOT_FOUND"),
        ({"sender_id": "ag_x", "recipient_id": worker}, "SENDER_NOT_FOUND"),
        ({"sender_id": worker, "recipient_id": worker, "workflow_id": "wf_x"}, "WORKFLOW_NOT_FOUND"),
        ({"sender_id": worker, "recipient_id": worker, "task_id": "tk_x"}, "TASK_NOT_FOUND"),
        ({"sender_id": worker, "recipient_id": worker, "reply_to_id": "msg_x"}, "MESSAGE_NOT_FOUND"),
    ):
        assert (await agent.refusal("message_send", **message, **arguments))["code"] == code
    assert (await agent.refusal("agent_heartbeat", agent_id=worker, current_task_id="x"))["code"] == "TASK_NOT_FOUND"
    assert (await agent.refusal("task_claim", task_id=tasks["a"], agent_id="ag_x"))["code"] == "AGENT_NOT_FOUND"
    refusal = await agent.refusal("checkpoint_add", task_id=tasks["a"], type="plan", summary="", agent_id="ag_x")
    assert refusal["code"] == "AGENT_NOT_FOUND"
    refusal = await agent.refusal("task_assign_workspace", task_id=tasks["a"], workspace_id="ws_x")
    assert refusal["code"] == "WORKSPACE_NOT_FOUND"


async def test_null_for_an_optional_argument_means_left_out(agent):
    created = await agent.call(
        "workflow_create", **WORKFLOW, source_ref=None, max_parallel_tasks=None, auto_create_workspaces=None
    )
    assert created["max_parallel_tasks"] == 1
    assert (await agent.call("workflow_list", limit=None, status=None, offset=None))["total"] == 1


# Requests that are sent again.


async def test_a_request_sent_again_gets_the_recorded_reply_and_changes_nothing(team, agent, make_task):
    first = await agent.call("workflow_create", **WORKFLOW, request_id="r1")
    assert await agent.call("workflow_create", **WORKFLOW, request_id="r1") == first
    elsewhere = await team.agent()
    assert await elsewhere.call("workflow_create", **WORKFLOW, request_id="r1") == first
    assert (await agent.call("workflow_list"))["total"] == 1
    _, tasks = await agent.workflow(make_task("a"))
    point = {"task_id": tasks["a"], "type": "progress", "summary": "x", "request_id": "r2"}
    assert [(await agent.call("checkpoint_add", **point))["sequence"] for _ in range(2)] == [1, 1]


async def test_a_repeated_completion_succeeds_although_the_claim_has_ended(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"))
    worker = await agent.worker()
    claim = {"task_id": tasks["a"], "agent_id": worker, "request_id": "claim"}
    assert await agent.call("task_claim", **claim) == await agent.call("task_claim", **claim)
    await agent.move(tasks["a"], "planning", "in_progress")
    for _ in range(2):
        await agent.move(tasks["a"], "completed", request_id="done")
    refusal = await agent.refusal("task_update_status", id=tasks["a"], status="completed", outcome="x")
    assert refusal["code"] == "INVALID_TRANSITION"


async def test_the_same_request_id_with_other_arguments_is_a_conflict(agent):
    await agent.call("workflow_create", **WORKFLOW, request_id="r")
    refusal = await agent.refusal("workflow_create", **{**WORKFLOW, "name": "other"}, request_id="r")
    assert (refusal["code"], refusal["recoverable"]) == ("REQUEST_CONFLICT", False)


async def test_a_refused_request_is_not_remembered(agent, make_task):
    _, tasks = await agent.workflow(make_task("a"), make_task("b", "a"))
    start = {"id": tasks["b"], "status": "planning", "request_id": "r"}
    assert (await agent.refusal("task_update_status", **start))["code"] == "TASK_BLOCKED"
    await agent.finish(tasks["a"])
    assert await agent.call("task_update_status", **start) == {"success": True}


async def test_replies_are_objects_and_never_json_in_a_string(agent, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"))
    result = await agent.client.call_tool("task_get", {"id": tasks["a"]})
    assert json.loads(result.content[0].text) == result.structured_content
    for value in (await agent.call("workflow_get", id=workflow_id)).values():
        assert not (isinstance(value, str) and value.startswith(("{", "[")))
