"""JOBS-REQ-001.4: `finished_step`."""

from __future__ import annotations

import inspect

import pytest

from deepwork.engine.reports import Report
from deepwork.errors import StateError
from deepwork.ports.call import ToolCall
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE_A = {"a.md": "a.md"}
DONE_B = {"b.md": "b.md"}


@pytest.fixture
def reviewed(project):
    """A project whose job has a review in its first step, and the files of both steps."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    project.write("b.md")
    return project


@pytest.fixture
def plain(project):
    """A project whose job has no reviews, and the files of both steps."""
    project.write_job()
    project.write("a.md")
    project.write("b.md")
    return project


def review_file(project, begin):
    return project.state / f"quality_review_{begin['session_id']}_{begin['step_id']}.md"


@pytest.mark.req("JOBS-REQ-001.4.1")
async def test_finished_step_is_an_async_tool(project):
    tool = await project.server().get_tool("finished_step")
    assert inspect.iscoroutinefunction(tool.fn)


@pytest.mark.req("JOBS-REQ-001.4.2")
async def test_outputs_is_required_and_maps_names_to_paths_or_lists_of_paths(plain):
    tool = await plain.server().get_tool("finished_step")
    assert tool.parameters["required"] == ["outputs"]
    values = tool.parameters["properties"]["outputs"]["additionalProperties"]["anyOf"]
    assert values == [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    async with plain.agent() as agent:
        await agent.start()
        assert "outputs: is required" in await agent.refused("finished_step")


@pytest.mark.req("JOBS-REQ-001.4.3")
@pytest.mark.parametrize("name", ["notes", "quality_review_override_reason", "session_id"])
async def test_an_optional_parameter_may_be_text_null_or_missing(plain, name):
    tool = await plain.server().get_tool("finished_step")
    assert name not in tool.parameters["required"]
    async with plain.agent() as agent:
        begin = await agent.start()
        text = begin["session_id"] if name == "session_id" else "some text"
        assert (await agent.finish(DONE_A, **{name: text}))["status"] == "next_step"
        assert (await agent.finish(DONE_B, **{name: None}))["status"] == "workflow_complete"


@pytest.mark.req("JOBS-REQ-001.4.4")
async def test_without_a_session_a_state_error_is_raised(plain, probed):
    with pytest.raises(StateError, match="No active workflow session"):
        await probed().engine.finish_step(ToolCall(), Report({}))


@pytest.mark.req("JOBS-REQ-001.4.4")
async def test_without_a_session_the_agent_reads_what_to_do(plain):
    async with plain.agent() as agent:
        text = await agent.refused("finished_step", outputs={})
    assert text.startswith("No active workflow session")
    assert "start_workflow" in text


@pytest.mark.req("JOBS-REQ-001.4.5")
async def test_a_session_id_targets_a_session_below_the_top(plain, stored):
    async with plain.agent() as agent:
        below, top = await agent.start(), await agent.start()
        reply = await agent.finish(DONE_A, session_id=below["session_id"])
    assert reply["begin_step"]["session_id"] == below["session_id"]
    assert stored(below["session_id"])["current_step_id"] == "b"
    assert stored(top["session_id"])["current_step_id"] == "a"


@pytest.mark.req("JOBS-REQ-001.4.6")
async def test_outputs_are_checked_against_the_current_step(plain):
    async with plain.agent() as agent:
        await agent.start()
        assert "Unknown outputs: b.md" in await agent.refused("finished_step", outputs=DONE_B)
        await agent.finish(DONE_A)
        assert "Unknown outputs: a.md" in await agent.refused("finished_step", outputs=DONE_A)


@pytest.mark.req("JOBS-REQ-001.4.7")
async def test_the_status_is_needs_work_next_step_or_workflow_complete(reviewed):
    async with reviewed.agent() as agent:
        await agent.start()
        statuses = [
            (await agent.finish(DONE_A))["status"],
            (await agent.finish(DONE_A, quality_review_override_reason="passed"))["status"],
            (await agent.finish(DONE_B))["status"],
        ]
    assert statuses == ["needs_work", "next_step", "workflow_complete"]


@pytest.mark.req("JOBS-REQ-001.4.8")
async def test_a_step_with_reviews_goes_through_the_gate_each_time(reviewed):
    async with reviewed.agent() as agent:
        begin = await agent.start()
        for _ in range(2):
            assert (await agent.finish(DONE_A))["status"] == "needs_work"
            review_file(reviewed, begin).unlink()


@pytest.mark.req("JOBS-REQ-001.4.8")
async def test_a_step_without_reviews_does_not_go_through_the_gate(plain):
    async with plain.agent() as agent:
        begin = await agent.start()
        assert (await agent.finish(DONE_A))["status"] == "next_step"
    assert not review_file(plain, begin).exists()


@pytest.mark.req("JOBS-REQ-001.4.9")
async def test_with_an_override_reason_the_gate_is_not_asked(reviewed):
    async with reviewed.agent() as agent:
        begin = await agent.start()
        reply = await agent.finish(DONE_A, quality_review_override_reason="The user has judged it")
    assert reply["status"] == "next_step"
    assert not review_file(reviewed, begin).exists()


@pytest.mark.req("JOBS-REQ-001.4.10")
async def test_self_review_writes_its_file_and_asks_for_a_subagent(reviewed):
    async with reviewed.agent() as agent:
        begin = await agent.start()
        reply = await agent.finish(DONE_A)
    file = review_file(reviewed, begin)
    assert "**Good**: Is it good?" in file.read_text()
    assert reply["status"] == "needs_work"
    assert str(file.relative_to(reviewed.root)) in reply["feedback"]
    assert "subagent" in reply["feedback"]


@pytest.mark.req("JOBS-REQ-001.4.15")
async def test_a_completed_step_is_kept_with_outputs_and_notes(plain, stored):
    async with plain.agent() as agent:
        begin = await agent.start()
        await agent.finish(DONE_A, notes="Was easy")
    progress = stored(begin["session_id"])["step_progress"]["a"]
    assert progress["completed_at"]
    assert progress["outputs"] == DONE_A
    assert progress["notes"] == "Was easy"


@pytest.mark.req("JOBS-REQ-001.4.16")
async def test_after_the_last_step_comes_a_summary_with_all_outputs(project):
    project.write_job(
        steps=[
            step("a", outputs={"same": output(), "list": output("files")}),
            step("b", outputs={"same": output(), "never": output(required=False)}),
        ]
    )
    for name in ("one", "two", "three"):
        project.write(name)
    async with project.agent() as agent:
        await agent.start()
        await agent.finish({"same": "one", "list": ["two", "three"]})
        reply = await agent.finish({"same": "three"})
    assert reply["status"] == "workflow_complete"
    assert "main" in reply["summary"]
    assert "completed" in reply["summary"]
    assert reply["all_outputs"] == {"same": "three", "list": ["two", "three"]}
    assert "begin_step" not in reply


@pytest.mark.req("JOBS-REQ-001.4.17")
async def test_before_the_last_step_comes_the_next_one(plain, stored):
    async with plain.agent() as agent:
        first = await agent.start()
        reply = await agent.finish(DONE_A)
    assert reply["status"] == "next_step"
    assert reply["begin_step"].keys() == first.keys() - {"branch_name"}
    assert reply["begin_step"]["session_id"] == first["session_id"]
    assert reply["begin_step"]["step_id"] == "b"
    assert reply["begin_step"]["step_instructions"] == "Instructions for b\n"
    assert stored(first["session_id"])["current_entry_index"] == 1


@pytest.mark.req("JOBS-REQ-001.4.18")
async def test_a_concurrent_entry_begins_with_its_first_step_and_says_so(project):
    project.write_job(steps=[step("a"), step("b"), step("c")], workflows={"main": ["a", ["c", "b"]]})
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        begin = (await agent.finish(DONE_A))["begin_step"]
    assert begin["step_id"] == "c"
    text, marker, message = begin["step_instructions"].partition("**CONCURRENT STEPS**")
    assert text.startswith("Instructions for c\n")
    assert marker
    assert "c, b" in message
    assert "Task tool" in message


@pytest.mark.req("JOBS-REQ-001.4.19")
async def test_every_answer_has_the_stack(reviewed):
    async with reviewed.agent() as agent:
        await agent.start()
        waiting = await agent.finish(DONE_A)
        moved = await agent.finish(DONE_A, quality_review_override_reason="passed")
        ended = await agent.finish(DONE_B)
    assert waiting["stack"] == [{"workflow": "demo/main", "step": "a"}]
    assert moved["stack"] == [{"workflow": "demo/main", "step": "b"}]
    assert ended["stack"] == []
