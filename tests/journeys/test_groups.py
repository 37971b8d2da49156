"""Steps that are done at the same time: the members are reported by their ids, the primary last."""

from __future__ import annotations

import pytest

from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio


def done(name):
    return {f"{name}.md": f"{name}.md"}


@pytest.fixture
def grouped(project):
    """A group of three between two plain steps, and the files of all."""
    project.write_job(steps=[step(name) for name in "abcde"], workflows={"main": ["a", ["b", "c", "d"], "e"]})
    for name in "abcde":
        project.write(f"{name}.md")
    return project


async def at_group(agent):
    """Start, and finish the step before the group; gives the group's `begin_step`."""
    await agent.start()
    return (await agent.finish(done("a")))["begin_step"]


async def test_members_are_reported_first_and_the_primary_moves_the_group_on(grouped, mode):
    async with grouped.agent(mode=mode) as agent:
        begin = await at_group(agent)
        session = begin["session_id"]
        for member in begin.get("concurrent_steps", []):
            name = member["step_id"]
            reply = await agent.finish(done(name), session_id=session, step_id=name)
            assert reply["status"] == "next_step"
            assert reply["begin_step"]["step_id"] == "b"
            assert name not in [item["step_id"] for item in reply["begin_step"].get("concurrent_steps", [])]
            assert reply["stack"] == [{"workflow": "demo/main", "step": "b"}]
        reply = await agent.finish(done("b"), session_id=session, step_id="b")
        assert reply["begin_step"]["step_id"] == "e"
        assert not any("never reported" in notice for notice in reply.get("notices", []))
        reply = await agent.finish(done("e"))
        assert reply["all_outputs"] == {f"{name}.md": f"{name}.md" for name in "abcde"}


async def test_members_that_were_never_reported_are_named_and_have_no_outputs(grouped, mode, stored):
    async with grouped.agent(mode=mode) as agent:
        begin = await at_group(agent)
        await agent.finish(done("d"), session_id=begin["session_id"], step_id="d")
        reply = await agent.finish(done("b"))
        assert reply["notices"][0].startswith("Completed without outputs, never reported: c. ")
        reply = await agent.finish(done("e"))
    assert sorted(reply["all_outputs"]) == ["a.md", "b.md", "d.md", "e.md"]
    assert stored(begin["session_id"])["step_progress"]["c"]["completed_at"]


async def test_without_a_step_id_a_call_counts_for_the_primary(grouped, mode):
    async with grouped.agent(mode=mode) as agent:
        await at_group(agent)
        text = await agent.refused("finished_step", outputs=done("c"))
        assert "Unknown outputs: c.md. Declared outputs: b.md" in text
        assert "'c.md' of step 'c' of demo/main: report with finished_step(session_id=" in text
        assert "3 steps are to be done at the same time: b, c, d. Reporting 'b' ends the group." in text


async def test_a_member_is_checked_against_its_own_declaration(project, mode):
    steps = [step("a"), step("b", outputs={"list": output("files")})]
    project.write_job(steps=steps, workflows={"main": [["a", "b"]]})
    project.write("a.md")
    async with project.agent(mode=mode) as agent:
        begin = await agent.start()
        call = {"session_id": begin["session_id"], "step_id": "b"}
        assert "Missing required outputs: list" in await agent.refused("finished_step", outputs={}, **call)
        assert "Unknown outputs: a.md" in await agent.refused("finished_step", outputs=done("a"), **call)
        assert "give a list" in await agent.refused("finished_step", outputs={"list": "a.md"}, **call)
        assert (await agent.finish({"list": ["a.md"]}, **call))["status"] == "next_step"


async def test_the_reviews_of_a_member_are_held(project, mode, stored):
    steps = [step("a"), step("b", reviews=[review()])]
    project.write_job(steps=steps, workflows={"main": [["a", "b"]]})
    project.write("a.md")
    project.write("b.md")
    async with project.agent(mode=mode) as agent:
        session = (await agent.start())["session_id"]
        call = {"session_id": session, "step_id": "b"}
        assert (await agent.finish(done("b"), **call))["status"] == "needs_work"
        assert (project.state / f"quality_review_{session}_b.md").exists()
        reply = await agent.finish(done("b"), **call, quality_review_override_reason="Passed")
        assert reply["status"] == "next_step"
    assert stored(session)["step_progress"]["b"]["override_reason"] == "Passed"


async def test_a_member_reported_again_before_the_group_moves_on_replaces_its_record(grouped, mode, stored):
    grouped.write("better.md")
    async with grouped.agent(mode=mode) as agent:
        session = (await at_group(agent))["session_id"]
        for path in ("c.md", "better.md"):
            await agent.finish({"c.md": path}, session_id=session, step_id="c")
        assert stored(session)["step_progress"]["c"]["outputs"] == {"c.md": "better.md"}
        await agent.finish(done("b"))
        text = await agent.refused("finished_step", outputs=done("c"), session_id=session, step_id="c")
    assert "Step 'c' was already completed with other outputs; the current step is 'e'" in text


async def test_a_group_at_the_end_completes_the_workflow(project, mode):
    project.write_job(workflows={"main": [["a", "b"]]})
    project.write("a.md")
    project.write("b.md")
    async with project.agent(mode=mode) as agent:
        session = (await agent.start())["session_id"]
        await agent.finish(done("b"), session_id=session, step_id="b")
        reply = await agent.finish(done("a"))
    assert reply["status"] == "workflow_complete"
    assert reply["all_outputs"] == done("a") | done("b")


async def test_other_workflows_may_nest_in_a_group(grouped, mode):
    grouped.write_job("other")
    async with grouped.agent(mode=mode) as agent:
        session = (await at_group(agent))["session_id"]
        await agent.start("other")
        reply = await agent.finish(done("c"), session_id=session, step_id="c")
        assert [entry["workflow"] for entry in reply["stack"]] == ["demo/main", "other/main"]
        assert reply["begin_step"]["session_id"] == session
