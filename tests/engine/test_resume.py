"""Resuming costs one call: an agent without any memory is told all that is needed to go on."""

import pytest
from fastmcp.exceptions import McpError

from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

LIMIT = 8000


def resume_text_in(refusal):
    return refusal[refusal.index("# Resume") :]


async def whole_text(agent, begin):
    """Return the resume text with all that `begin_step` has in the reply to a question."""
    (resource,) = await agent.client.read_resource(f"deepwork://sessions/{begin['session_id']}")
    return resource.text


async def test_a_question_changes_nothing_and_is_answered_with_the_resume_text(demo, stored):
    async with demo.agent() as agent:
        begin = await agent.start()
        before = stored(begin["session_id"])
        text = await agent.where(session_id=begin["session_id"])
    assert f"# Resume demo/main, session {begin['session_id']}" in text
    assert stored(begin["session_id"]) == before


async def test_a_step_that_is_still_to_come_is_refused_with_the_resume_text(demo, stored):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="long")
        text = await agent.refused("finished_step", outputs={"c.md": "c.md"}, step_id="c", **_named(begin))
    assert "the current step is 'a'; nothing was changed" in text
    assert "Now at step 'a'" in text


async def test_a_question_adopts_the_session(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
    async with demo.agent() as agent:
        await agent.where(**_named(begin))
        assert (await agent.finish({"a.md": "a.md"}))["begin_step"]["step_id"] == "b"


async def test_a_question_without_a_session_id_is_about_the_top_of_the_stack(demo):
    async with demo.agent() as agent:
        await agent.start()
        top = await agent.start(workflow="long")
        text = await agent.where()
    assert f"session {top['session_id']}" in text


async def test_the_first_rejected_call_of_an_adopted_session_carries_the_resume_text(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
    async with demo.agent() as agent:
        first = await agent.refused("finished_step", outputs={}, step_id="a", **_named(begin))
        second = await agent.refused("finished_step", outputs={}, step_id="a", **_named(begin))
    assert "Missing required outputs: a.md" in first
    assert "Now at step 'a'" in resume_text_in(first)
    assert "# Resume" not in second


async def test_it_does_so_too_when_an_accepted_call_came_before(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
    async with demo.agent() as agent:
        await agent.finish({"a.md": "a.md"}, step_id="a", **_named(begin))
        first = await agent.refused("finished_step", outputs={}, step_id="b", **_named(begin))
        second = await agent.refused("finished_step", outputs={}, step_id="b", **_named(begin))
    assert "Now at step 'b'" in resume_text_in(first)
    assert "# Resume" not in second


async def test_a_parent_that_was_adopted_with_its_child_is_told_of_too(demo):
    async with demo.agent() as agent:
        await agent.start()
        child = await agent.start(workflow="single")
    async with demo.agent() as agent:
        await agent.finish({"a.md": "a.md"}, step_id="a", **_named(child))
        text = await agent.refused("finished_step", outputs={})
    assert "# Resume demo/main" in text


async def test_a_rejected_call_of_a_session_that_was_started_here_carries_no_resume_text(demo):
    async with demo.agent() as agent:
        await agent.start()
        assert "# Resume" not in await agent.refused("finished_step", outputs={})


async def test_the_resume_text_tells_goal_step_outputs_instructions_and_what_is_done(project):
    project.write_job(
        steps=[
            step("a"),
            step(
                "b",
                outputs={"one.md": output(), "many": output("files", required=False)},
                inputs=[{"name": "audience", "description": "Who reads it"}, {"file": "a.md", "from_step": "a"}],
                dependencies=["a"],
            ),
        ],
        workflows={"main": ["a", "b"]},
    )
    project.write("done/a.md")
    async with project.agent() as agent:
        begin = await agent.start()
        await agent.finish({"a.md": "done/a.md"})
        text = await whole_text(agent, begin)
    call = f"finished_step(session_id='{begin['session_id']}', step_id='b', outputs={{...}})"
    for part in (
        "Goal: a goal",
        f"Now at step 'b' (step 2 of 2). When its outputs are there, call {call}.",
        "- one.md (filepath, required): A file",
        "- many (array of filepaths for all individual files, optional): A files",
        "- audience: Who reads it",
        "- a.md: done/a.md",
        "Instructions for b",
        '- a: {"a.md": "done/a.md"}',
        "About demo",
        f"Job folder: {begin['job_dir']}",
    ):
        assert part in text


async def test_the_resume_text_keeps_the_instructions_as_they_were_when_the_step_began(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        demo.write(".deepwork/jobs/demo/steps/a.md", "Something else\n")
        text = await whole_text(agent, begin)
    assert "Instructions for a\n" in text
    assert "Something else" not in text


async def test_in_a_group_the_resume_text_holds_each_open_member_with_its_own_call(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        open_both = await whole_text(agent, begin)
        await agent.finish({"c.md": "c.md"}, step_id="c", **_named(begin))
        open_one = await whole_text(agent, begin)
    call = f"Report it before 'b': finished_step(session_id='{begin['session_id']}', step_id='c', outputs={{...}})"
    assert call in open_both
    assert "## Outputs of 'c'\n\n- c.md (filepath, required)" in open_both
    assert "Instructions for c" in open_both
    assert "## Also open in this group: 'c'" not in open_one
    assert '- c: {"c.md": "c.md"}' in open_one


async def test_the_resume_text_repeats_that_a_review_was_handed_back(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="reviewed")
        feedback = (await agent.finish({"r.md": "r.md"}))["feedback"]
        text = await agent.where(**_named(begin))
    assert feedback in text


async def test_a_long_resume_text_is_cut_and_stands_whole_in_a_file_that_it_names(demo):
    demo.write(".deepwork/jobs/demo/steps/a.md", "A line of instructions\n" * 1000)
    async with demo.agent() as agent:
        begin = await agent.start()
        text = await whole_text(agent, begin)
    file = demo.state / f"resume_{begin['session_id']}.md"
    assert len(text) <= LIMIT
    assert f"It is in .deepwork/tmp/{file.name}" in text
    content = file.read_text()
    assert content.startswith(text[: text.index("\n\n[Cut here")])
    assert content.count("A line of instructions") == 1000
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_cut_resume_text_still_tells_what_to_call_and_with_which_outputs(demo):
    async with demo.agent() as agent:
        goal = "A very long goal\n" * 2000
        await agent.call("start_workflow", goal=goal, job_name="demo", workflow_name="main")
        text = resume_text_in(await agent.where())
    assert len(text) <= LIMIT
    assert "Now at step 'a'" in text


async def test_a_resume_text_of_the_greatest_length_is_not_cut(demo):
    async with demo.agent() as agent:
        short = await whole_text(agent, await agent.start())
        await agent.call("abort_workflow", explanation="enough")
        padding = "x" * (LIMIT - len(short))
        demo.write(".deepwork/jobs/demo/steps/a.md", f"Instructions for a\n{padding}")
        begin = await agent.start()
        text = await whole_text(agent, begin)
    assert len(text) == LIMIT
    assert not (demo.state / f"resume_{begin['session_id']}.md").exists()


async def test_reviews_and_long_resume_texts_need_no_files_of_sessions(demo):
    """The store `memory` makes no folder of its own."""
    demo.write(".deepwork/jobs/demo/steps/r.md", "A line of instructions\n" * 1000)
    async with demo.agent(state_store="memory") as agent:
        begin = await agent.start(workflow="reviewed")
        assert (await agent.finish({"r.md": "r.md"}))["status"] == "needs_work"
        assert "It is in .deepwork/tmp/resume_" in await whole_text(agent, begin)


async def test_the_resource_of_a_session_is_its_resume_text(demo, deepwork):
    async with demo.agent() as agent:
        begin = await agent.start()
        (resource,) = await agent.client.read_resource(f"deepwork://sessions/{begin['session_id']}")
    assert resource.text == (await deepwork("sessions", "resume-text", begin["session_id"])).strip()
    assert resource.mime_type == "text/markdown"


async def test_the_answer_to_a_question_says_nothing_twice(demo):
    """What `begin_step` says of the open steps does not stand in `feedback` too."""
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        reply = await agent.finish({}, step_id="?")
        full_text = await whole_text(agent, begin)
    assert reply["begin_step"] == begin
    for text in ("Instructions for b", "Instructions for c", "A file", "2 steps are to be done", "About demo"):
        assert text not in reply["feedback"], text
        assert text in full_text
    assert "Goal: a goal" in reply["feedback"]


async def test_the_resource_of_an_ended_session_says_so(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        await agent.call("abort_workflow", explanation="enough")
        (resource,) = await agent.client.read_resource(f"deepwork://sessions/{begin['session_id']}")
    assert "is over: aborted (enough)" in resource.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_resource_of_an_unknown_session_is_a_readable_error(demo, caplog, mode):
    async with demo.agent(mode=mode) as agent:
        with pytest.raises(McpError, match="Session 'nobody' not found"):
            await agent.client.read_resource("deepwork://sessions/nobody")
    assert "Traceback" not in caplog.text


def _named(begin):
    return {"session_id": begin["session_id"]}


async def test_a_finished_review_is_not_told_of_again(project):
    project.write_job(steps=[step("r", reviews=[review()]), step("a")], workflows={"main": ["r", "a"]})
    project.write("r.md")
    async with project.agent() as agent:
        await agent.start()
        await agent.finish({"r.md": "r.md"})
        await agent.finish({"r.md": "r.md"}, quality_review_override_reason="All passed")
        text = await agent.where()
    assert "## Review" not in text
