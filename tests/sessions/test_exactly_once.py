"""A call that arrives twice counts once, and a reply that was lost can be had again."""

import anyio
import pytest

from deepwork.testing import step

pytestmark = pytest.mark.anyio


def lasting(reply):
    return {name: value for name, value in reply.items() if name not in ("stack", "notices")}


@pytest.fixture
def project_with_equal_outputs(project):
    """Two steps that take the same output, so that a repeat without step_id is accepted for the second."""
    same = {"report.md": {"type": "file", "description": "A report", "required": True}}
    project.write_job(steps=[step("a", outputs=same), step("b", outputs=same)])
    project.write("report.md")
    return project


async def test_the_server_tells_agents_to_send_both_ids_back(demo):
    async with demo.agent() as agent:
        instructions = agent.client.initialize_result.instructions if agent.client.initialize_result else ""
    instructions = instructions or demo.server().instructions
    assert "finished_step with session_id, step_id" in instructions


async def test_a_repeat_of_the_last_completed_step_gets_the_recorded_reply(demo, events):
    async with demo.agent() as agent:
        begin = await agent.start()
        call = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
        first = await agent.finish(**call)
        assert await agent.finish(**call) == first
    assert events(begin["session_id"]).count(("step_completed", "a")) == 1


async def test_a_repeat_writes_nothing(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        call = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
        await agent.finish(**call)
        before = (demo.state / f"session_{begin['session_id']}.json").stat()
        await agent.finish(**call)
        after = (demo.state / f"session_{begin['session_id']}.json").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


async def test_a_repeat_for_an_earlier_step_gets_its_reply_and_the_current_step_in_a_notice(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="long")
        first = await agent.finish({"a.md": "a.md"})
        await agent.finish({"b.md": "b.md"})
        repeat = await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
    assert lasting(repeat) == lasting(first)
    assert repeat["begin_step"]["step_id"] == "b"
    assert "This step was completed before; the current step is 'c'." in repeat.get("notices", [])
    assert repeat["stack"] == [{"workflow": "demo/long", "step": "c"}]


async def test_a_repeat_for_a_completed_workflow_gets_the_recorded_reply(demo, events):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="single")
        call = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
        first = await agent.finish(**call)
        assert first["status"] == "workflow_complete"
        assert await agent.finish(**call) == first
    assert events(begin["session_id"]).count(("completed", None)) == 1


async def test_a_repeat_gets_the_stack_of_now(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        call = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
        await agent.finish(**call)
        await agent.start(workflow="long")
        repeat = await agent.finish(**call)
    assert repeat["stack"] == [{"workflow": "demo/main", "step": "b"}, {"workflow": "demo/long", "step": "a"}]


async def test_a_repeat_after_a_restart_gets_the_recorded_reply(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        call = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
        first = await agent.finish(**call)
    async with demo.agent() as agent:
        repeat = await agent.finish(**call)
    assert repeat.pop("notices") == [
        f"Session {begin['session_id']!r} was begun on another connection. Its goal: a goal"
    ]
    assert repeat == first


async def test_notes_and_override_reason_are_not_compared(demo, stored):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="reviewed")
        call = {"outputs": {"r.md": "r.md"}, "session_id": begin["session_id"], "step_id": "r"}
        first = await agent.finish(**call, notes="one", quality_review_override_reason="Passed")
        assert await agent.finish(**call, notes="two", quality_review_override_reason="Really passed") == first
        assert await agent.finish(**call) == first
    progress = stored(begin["session_id"])["step_progress"]["r"]
    assert (progress["notes"], progress["override_reason"]) == ("one", "Passed")


async def test_other_outputs_for_a_completed_step_are_refused_with_the_current_step(demo, stored):
    demo.write("other.md")
    async with demo.agent() as agent:
        begin = await agent.start()
        await agent.finish({"a.md": "a.md"})
        before = stored(begin["session_id"])
        call = {"session_id": begin["session_id"], "step_id": "a"}
        text = await agent.refused("finished_step", outputs={"a.md": "other.md"}, **call)
    assert "Step 'a' was already completed with other outputs; the current step is 'b'; nothing was changed" in text
    assert stored(begin["session_id"]) == before


async def test_a_repeat_does_not_look_at_the_files_again(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        call = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
        first = await agent.finish(**call)
        (demo.root / "a.md").unlink()
        assert await agent.finish(**call) == first


async def test_a_repeat_for_a_step_of_an_aborted_session_gets_its_reply_and_the_news(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        call = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
        first = await agent.finish(**call)
        await agent.call("abort_workflow", explanation="enough")
        repeat = await agent.finish(**call)
    assert lasting(repeat) == lasting(first)
    assert "The workflow is over: aborted." in repeat.get("notices", [])
    assert repeat["stack"] == []


async def test_another_step_of_an_ended_session_is_refused_with_what_became_of_it(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        await agent.call("abort_workflow", explanation="enough")
        call = {"session_id": begin["session_id"], "step_id": "a"}
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, **call)
    assert f"Session {begin['session_id']!r} of demo/main is over: aborted (enough)" in text


async def test_two_calls_at_once_count_once_and_get_the_same_reply(demo, events):
    replies = []
    async with demo.agent() as agent:
        begin = await agent.start()

        async def finish():
            replies.append(await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a"))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(finish)
    assert all(lasting(reply) == lasting(replies[0]) for reply in replies)
    assert events(begin["session_id"]).count(("step_completed", "a")) == 1


async def test_a_repeated_abort_gets_the_recorded_reply_with_the_stack_of_now(demo, events):
    async with demo.agent() as agent:
        await agent.start()
        child = await agent.start(workflow="long")
        call = {"explanation": "enough", "session_id": child["session_id"]}
        first = await agent.call("abort_workflow", **call)
        await agent.start(workflow="single")
        repeat = await agent.call("abort_workflow", **{**call, "explanation": "another"})
    assert lasting(repeat) == lasting(first)
    assert repeat["explanation"] == "enough"
    assert repeat["stack"] == [{"workflow": "demo/main", "step": "a"}, {"workflow": "demo/single", "step": "a"}]
    assert events(child["session_id"]).count(("aborted", "a")) == 1


async def test_an_abort_of_a_completed_session_is_refused(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="single")
        await agent.finish({"a.md": "a.md"})
        text = await agent.refused("abort_workflow", explanation="enough", session_id=begin["session_id"])
    assert "is over: completed" in text


async def test_without_step_id_a_call_counts_for_the_current_step(project_with_equal_outputs, events):
    async with project_with_equal_outputs.agent() as agent:
        begin = await agent.start()
        await agent.finish({"report.md": "report.md"})
        assert (await agent.finish({"report.md": "report.md"}))["status"] == "workflow_complete"
    assert ("step_completed", "b") in events(begin["session_id"])


async def test_without_step_id_a_repeat_that_fails_says_so_and_carries_the_resume_text(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        await agent.finish({"a.md": "a.md"})
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
    assert "Unknown outputs: a.md" in text
    assert "These are the outputs of step 'a', which is already completed" in text
    assert f"# Resume demo/main, session {begin['session_id']}" in text
    assert "Now at step 'b'" in text


async def test_without_step_id_a_failing_call_with_other_outputs_is_only_refused(demo):
    async with demo.agent() as agent:
        await agent.start()
        await agent.finish({"a.md": "a.md"})
        text = await agent.refused("finished_step", outputs={"c.md": "c.md"})
    assert "already completed" not in text
    assert "# Resume" not in text


async def test_without_step_id_a_repeat_for_a_group_is_recognised_though_members_were_never_reported(demo):
    async with demo.agent() as agent:
        await agent.start(workflow="opening")
        await agent.finish({"b.md": "b.md"})
        text = await agent.refused("finished_step", outputs={"b.md": "b.md"})
    assert "These are the outputs of step 'b', which is already completed" in text


async def test_without_ids_a_repeat_for_a_nested_session_that_has_just_ended_carries_the_parents_text(demo):
    async with demo.agent() as agent:
        parent = await agent.start(workflow="reviewed")
        await agent.start(workflow="single")
        await agent.finish({"a.md": "a.md"})
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
    assert "These are the outputs of step 'a', which is already completed, and with it the workflow demo/single" in text
    assert f"# Resume demo/reviewed, session {parent['session_id']}" in text


async def test_without_ids_a_repeat_after_the_last_session_has_ended_is_the_no_session_error(demo):
    async with demo.agent() as agent:
        await agent.start(workflow="single")
        await agent.finish({"a.md": "a.md"})
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
    assert text.startswith("No active workflow session")
    assert "These are the outputs of step 'a', which is already completed, and with it the workflow demo/single" in text


async def test_without_ids_a_repeat_is_recognised_by_a_new_server_too(demo):
    """The reply was lost because the server died, and a new one has answered none of the calls before."""
    async with demo.agent() as agent:
        parent = await agent.start(workflow="long")
        await agent.start(workflow="single")
        await agent.finish({"a.md": "a.md"})
    async with demo.agent() as agent:
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
    assert "These are the outputs of step 'a', which is already completed, and with it the workflow demo/single" in text
    assert f"- {parent['session_id']}" in text


async def test_a_lost_question_is_not_taken_for_a_repeat_of_a_step_without_outputs(project):
    project.write_job(steps=[step("none", outputs={})])
    async with project.agent() as agent:
        await agent.start()
        await agent.finish({})
        assert "already completed" not in await agent.refused("finished_step", outputs={}, step_id="?")
        assert "already completed" not in await agent.refused("abort_workflow", explanation="enough")


async def test_with_the_id_of_an_ended_session_and_without_step_id_a_repeat_is_named(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="single")
        await agent.finish({"a.md": "a.md"})
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, session_id=begin["session_id"])
    assert "is over: completed" in text
    assert "These are the outputs of step 'a'" in text
