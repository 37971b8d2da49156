"""`deepwork sessions undo` and `reopen`: a person takes a session back to a step, and the agent goes on from there."""

from __future__ import annotations

import json

import pytest

from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

A, B, C = {"a.md": "a.md"}, {"b.md": "b.md"}, {"c.md": "c.md"}


@pytest.fixture
def demo(project):
    project.write_job(
        steps=[step("a", reviews=[review()]), step("b"), step("c")],
        workflows={"main": ["a", "b", "c"], "group": [["a", "b"], "c"], "single": ["b"]},
    )
    for name in "abc":
        project.write(f"{name}.md")
    return project


@pytest.fixture
def back(deepwork):
    """Run one of the two commands with a reason; gives what it printed."""

    async def back(command, *arguments, code=0):
        return await deepwork("sessions", command, *arguments, "--reason", "It was wrong", code=code)

    return back


async def reviewed(agent, **more):
    await agent.finish(A, **more)
    return await agent.finish(A, quality_review_override_reason="Good: passed", **more)


async def completed(agent):
    begin = await agent.start()
    await reviewed(agent)
    await agent.finish(B)
    await agent.finish(C)
    return begin["session_id"]


async def test_undo_takes_back_the_step_completed_last_and_a_repeated_report_counts_as_new(demo, back, stored):
    async with demo.agent() as agent:
        begin = await agent.start()
        await reviewed(agent)
        await agent.finish(B)
        session_id = begin["session_id"]
        assert "now at b, step 2 of 3" in await back("undo", session_id[:6])
        assert "Now at step 'b' (step 2 of 3)" in await agent.where(session_id=session_id)
        before = len(stored()["history"])
        assert (await agent.finish(B, session_id=session_id, step_id="b"))["begin_step"]["step_id"] == "c"
    events = stored()["history"]
    assert [entry["kind"] for entry in events[before:]] == ["step_completed", "step_begun"]
    [event] = [entry for entry in events if entry["kind"] == "reopened"]
    assert (event["step_id"], event["detail"]) == ("b", {"reason": "It was wrong"})


async def test_undo_goes_back_a_step_each_time_until_nothing_is_left(demo, back):
    async with demo.agent() as agent:
        session_id = await completed(agent)
    for step_id in "cba":
        assert f"now at {step_id}, " in await back("undo", session_id)
    assert "there is nothing to undo" in await back("undo", session_id, code=1)


async def test_reopen_makes_a_step_of_a_completed_session_the_current_one_and_later_steps_are_open_again(
    demo, back, stored
):
    async with demo.agent() as agent:
        session_id = await completed(agent)
        history = stored()["history"]
        await back("reopen", session_id, "b")
        session = stored()
        assert (session["status"], session["completed_at"], session["current_step_id"]) == ("active", None, "b")
        assert [*session["step_progress"]] == ["a", "b"]
        assert session["history"][: len(history)] == history
        await agent.refused("finished_step", outputs=C, session_id=session_id, step_id="c")
        assert (await agent.finish(B, session_id=session_id))["status"] == "next_step"
        assert (await agent.finish(C))["all_outputs"] == {**A, **B, **C}


async def test_a_reopened_step_is_reviewed_again(demo, back, history):
    async with demo.agent() as agent:
        session_id = await completed(agent)
        await back("reopen", session_id, "a")
        assert (await agent.finish(A, session_id=session_id))["status"] == "needs_work"
        await back("reopen", session_id, "a")
        await agent.finish(A, session_id=session_id, quality_review_override_reason="no time")
    assert history("override") == [{"reason": "no time", "before_review": True}]


async def test_an_aborted_session_is_reopened_at_a_step_but_not_undone(demo, back):
    async with demo.agent() as agent:
        begin = await agent.start()
        await reviewed(agent)
        await agent.call("abort_workflow", explanation="enough")
        session_id = begin["session_id"]
        assert "is over: aborted (enough)" in await back("undo", session_id, code=1)
        await back("reopen", session_id, "b")
        assert (await agent.finish(B, session_id=session_id))["begin_step"]["step_id"] == "c"


async def test_a_member_of_a_group_is_reopened_with_its_primary(demo, back, deepwork):
    async def resume_text(begin):
        return await deepwork("sessions", "resume-text", begin["session_id"])

    async with demo.agent() as agent:
        begin = await agent.start(workflow="group")
        named = {"session_id": begin["session_id"]}
        await agent.finish(B, **named, step_id="b")
        await reviewed(agent, **named, step_id="a")
        await back("reopen", begin["session_id"], "b")
        assert "2 steps are to be done at the same time: a, b." in await resume_text(begin)
        assert (await agent.finish(B, **named, step_id="b"))["begin_step"]["step_id"] == "a"
        await back("reopen", begin["session_id"], "a")
        assert "Of this group only 'a' is still open" in await resume_text(begin)


async def test_going_back_is_refused_while_a_nested_session_is_active(demo, back, stored):
    async with demo.agent() as agent:
        parent = await agent.start()
        await reviewed(agent)
        child = await agent.start(workflow="single")
        before = stored(parent["session_id"])
        text = await back("undo", parent["session_id"], code=1)
        assert f"demo/single, session '{child['session_id']}', runs inside of this session" in text
        assert stored(parent["session_id"]) == before
        await agent.finish(B)
        await back("undo", parent["session_id"])


@pytest.mark.parametrize(
    ("step_id", "says"),
    [("zzz", "'zzz' is not a step of demo/main; it has: a, b, c"), ("c", "Step 'c' of demo/main was not begun yet")],
)
async def test_a_step_that_cannot_be_reopened_is_told_so_and_nothing_changes(demo, back, stored, step_id, says):
    async with demo.agent() as agent:
        begin = await agent.start()
        before = stored()
        assert says in await back("reopen", begin["session_id"], step_id, code=1)
    assert stored() == before


async def test_show_tells_a_passed_self_review_from_an_override(demo, deepwork):
    async with demo.agent() as agent:
        passed = await agent.start()
        await reviewed(agent)
        skipped = await agent.start()
        await agent.finish(A, quality_review_override_reason="no time")
    text = await deepwork("sessions", "show", passed["session_id"])
    assert "self-review passed, by the agent's word: Good: passed" in text
    assert "step 2 of 3" in text
    assert "overridden before any review: no time" in await deepwork("sessions", "show", skipped["session_id"])
    assert "self-review passed, by the agent's word: Good: passed" in await deepwork(
        "gate", "show", passed["session_id"]
    )


async def test_list_shows_how_far_a_session_is_and_archived_ones_if_asked(demo, deepwork):
    async with demo.agent() as agent:
        session_id = await completed(agent)
        await agent.start(workflow="group")
    assert "demo/group at a, step 1 of 2: a goal" in await deepwork("sessions", "list")
    assert json.loads(await deepwork("sessions", "list", "--archived", "--json"))["sessions"] == []
    await deepwork("sessions", "clean", "--older-than", "0")
    [archived] = json.loads(await deepwork("sessions", "list", "--archived", "--json"))["sessions"]
    assert (archived["session_id"], archived["status"]) == (session_id, "completed")
    assert session_id not in await deepwork("sessions", "list")
