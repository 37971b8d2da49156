"""JOBS-REQ-001.6: `abort_workflow`."""

from __future__ import annotations

import inspect

import pytest

from deepwork.errors import StateError
from deepwork.ports.call import ToolCall

pytestmark = pytest.mark.anyio


@pytest.fixture
def jobs(project):
    """A project with two jobs, `outer` and `inner`, and the file of their first step."""
    project.write_job("outer")
    project.write_job("inner")
    project.write("a.md")
    return project


@pytest.mark.req("JOBS-REQ-001.6.1")
async def test_abort_workflow_is_an_async_tool(project):
    tool = await project.server().get_tool("abort_workflow")
    assert inspect.iscoroutinefunction(tool.fn)


@pytest.mark.req("JOBS-REQ-001.6.2")
async def test_an_explanation_is_required(jobs):
    tool = await jobs.server().get_tool("abort_workflow")
    assert tool.parameters["required"] == ["explanation"]
    assert tool.parameters["properties"]["explanation"]["type"] == "string"
    async with jobs.agent() as agent:
        await agent.start("outer")
        assert "explanation: is required" in await agent.refused("abort_workflow")


@pytest.mark.req("JOBS-REQ-001.6.3")
async def test_a_session_id_may_be_given(jobs, stored):
    async with jobs.agent() as agent:
        below, top = await agent.start("outer"), await agent.start("inner")
        await agent.call("abort_workflow", explanation="e", session_id=below["session_id"])
        assert stored(below["session_id"])["status"] == "aborted"
        assert stored(top["session_id"])["status"] == "active"
        await agent.call("abort_workflow", explanation="e", session_id=None)
        assert stored(top["session_id"])["status"] == "aborted"


@pytest.mark.req("JOBS-REQ-001.6.4")
async def test_without_a_session_a_state_error_is_raised(probed):
    with pytest.raises(StateError, match="No active workflow session"):
        await probed().engine.abort(ToolCall(), explanation="e")


@pytest.mark.req("JOBS-REQ-001.6.4")
async def test_after_the_last_session_has_ended_there_is_none_to_abort(jobs):
    async with jobs.agent() as agent:
        await agent.start("outer")
        await agent.call("abort_workflow", explanation="e")
        assert "No active workflow session" in await agent.refused("abort_workflow", explanation="e")


@pytest.mark.req("JOBS-REQ-001.6.5")
async def test_the_session_is_marked_as_aborted_with_the_explanation(jobs, stored):
    async with jobs.agent() as agent:
        begin = await agent.start("outer")
        await agent.call("abort_workflow", explanation="The source is gone")
    session = stored(begin["session_id"])
    assert session["status"] == "aborted"
    assert session["abort_reason"] == "The source is gone"
    assert session["completed_at"]


@pytest.mark.req("JOBS-REQ-001.6.6")
async def test_the_session_leaves_the_stack_wherever_it_stands(jobs):
    async with jobs.agent() as agent:
        first_steps = [await agent.start("outer"), await agent.start("inner"), await agent.start("outer")]
        reply = await agent.call("abort_workflow", explanation="e", session_id=first_steps[1]["session_id"])
        assert [entry["workflow"] for entry in reply["stack"]] == ["outer/main", "outer/main"]
        reply = await agent.call("abort_workflow", explanation="e")
        assert [entry["workflow"] for entry in reply["stack"]] == ["outer/main"]
        assert (await agent.finish({"a.md": "a.md"}))["begin_step"]["session_id"] == first_steps[0]["session_id"]


@pytest.mark.req("JOBS-REQ-001.6.7")
async def test_the_answer_tells_what_was_aborted_and_why(jobs):
    async with jobs.agent() as agent:
        await agent.start("outer")
        await agent.finish({"a.md": "a.md"})
        reply = await agent.call("abort_workflow", explanation="No longer needed")
    reply.pop("notices", None)
    assert reply == {
        "aborted_workflow": "outer/main",
        "aborted_step": "b",
        "explanation": "No longer needed",
        "stack": [],
        "resumed_workflow": None,
        "resumed_step": None,
    }


@pytest.mark.req("JOBS-REQ-001.6.8")
async def test_the_parent_on_the_stack_is_the_one_resumed(jobs):
    async with jobs.agent() as agent:
        await agent.start("outer")
        await agent.finish({"a.md": "a.md"})
        await agent.start("inner")
        reply = await agent.call("abort_workflow", explanation="e")
    assert (reply["aborted_workflow"], reply["aborted_step"]) == ("inner/main", "a")
    assert (reply["resumed_workflow"], reply["resumed_step"]) == ("outer/main", "b")
    assert reply["stack"] == [{"workflow": "outer/main", "step": "b"}]
