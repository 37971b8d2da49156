"""Workflows inside workflows: start one during another, come back when it completes or is aborted."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.anyio

A, B = {"a.md": "a.md"}, {"b.md": "b.md"}


@pytest.fixture
def jobs(project):
    """Three jobs of two steps each, and the files of both steps."""
    for name in ("outer", "inner", "core"):
        project.write_job(name)
    project.write("a.md")
    project.write("b.md")
    return project


def entries(reply):
    return [f"{entry['workflow']}@{entry['step']}" for entry in reply["stack"]]


async def start(agent, job, **more):
    return await agent.call("start_workflow", goal=f"do {job}", job_name=job, workflow_name="main", **more)


async def test_a_nested_workflow_is_completed_and_the_parent_goes_on(jobs, connected):
    async with connected as agent:
        assert entries(await start(agent, "outer")) == ["outer/main@a"]
        assert entries(await agent.finish(A)) == ["outer/main@b"]
        assert entries(await start(agent, "inner")) == ["outer/main@b", "inner/main@a"]
        assert entries(await agent.finish(A)) == ["outer/main@b", "inner/main@b"]
        reply = await agent.finish(B)
        assert (reply["status"], entries(reply)) == ("workflow_complete", ["outer/main@b"])
        reply = await agent.finish(B)
        assert (reply["status"], entries(reply)) == ("workflow_complete", [])
        assert "No active workflow session" in await agent.refused("finished_step", outputs=B)


async def test_a_completed_nested_workflow_tells_the_way_back(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        outer = (await start(agent, "outer"))["begin_step"]["session_id"]
        await start(agent, "inner")
        await agent.finish(A)
        reply = await agent.finish(B)
    assert f"Back in outer/main: session_id='{outer}', step_id='a'." in reply.get("notices", [])
    assert reply["all_outputs"] == A | B


async def test_an_aborted_nested_workflow_resumes_its_parent(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        outer = (await start(agent, "outer"))["begin_step"]["session_id"]
        await agent.finish(A)
        await start(agent, "inner")
        reply = await agent.call("abort_workflow", explanation="The source is gone")
        assert (reply["aborted_workflow"], reply["aborted_step"]) == ("inner/main", "a")
        assert (reply["resumed_workflow"], reply["resumed_step"]) == ("outer/main", "b")
        assert entries(reply) == ["outer/main@b"]
        assert f"Back in outer/main: session_id='{outer}', step_id='b'." in reply.get("notices", [])
        assert (await agent.finish(B))["status"] == "workflow_complete"


async def test_aborting_the_outermost_workflow_resumes_nothing(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        await start(agent, "outer")
        reply = await agent.call("abort_workflow", explanation="e")
    assert (reply["resumed_workflow"], reply["resumed_step"], reply["stack"]) == (None, None, [])


async def test_three_levels_are_left_from_the_top(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        for job in ("outer", "inner", "core"):
            reply = await start(agent, job)
        assert entries(reply) == ["outer/main@a", "inner/main@a", "core/main@a"]
        reply = await agent.call("abort_workflow", explanation="e")
        assert (reply["resumed_workflow"], reply["resumed_step"]) == ("inner/main", "a")
        await agent.finish(A)
        assert entries(await agent.finish(B)) == ["outer/main@a"]


async def test_a_workflow_may_be_nested_in_itself(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        first = (await start(agent, "outer"))["begin_step"]["session_id"]
        second = (await start(agent, "outer"))["begin_step"]["session_id"]
        assert entries(await agent.finish(A)) == ["outer/main@a", "outer/main@b"]
        reply = await agent.call("abort_workflow", explanation="e", session_id=first)
        assert entries(reply) == ["outer/main@b"]
        assert (await agent.finish(B, session_id=second))["stack"] == []


async def test_a_workflow_below_the_top_is_finished_by_its_id_and_the_top_stays(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        outer = (await start(agent, "outer"))["begin_step"]["session_id"]
        await start(agent, "inner")
        assert entries(await agent.finish(A, session_id=outer)) == ["outer/main@b", "inner/main@a"]
        reply = await agent.finish(B, session_id=outer)
        assert (reply["status"], entries(reply)) == ("workflow_complete", ["inner/main@a"])
        assert entries(await agent.finish(A)) == ["inner/main@b"]


async def test_aborting_a_workflow_below_the_top_resumes_the_top(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        outer = (await start(agent, "outer"))["begin_step"]["session_id"]
        await start(agent, "inner")
        await agent.finish(A)
        reply = await agent.call("abort_workflow", explanation="e", session_id=outer)
    assert reply["aborted_workflow"] == "outer/main"
    assert (reply["resumed_workflow"], reply["resumed_step"]) == ("inner/main", "b")


async def test_a_workflow_can_be_nested_under_a_named_session(jobs, mode, stored):
    async with jobs.agent(mode=mode) as agent:
        outer = (await start(agent, "outer"))["begin_step"]["session_id"]
        inner = (await start(agent, "inner"))["begin_step"]["session_id"]
        reply = await start(agent, "core", parent_session_id=outer)
    assert entries(reply) == ["outer/main@a", "inner/main@a", "core/main@a"]
    assert stored(inner)["parents"] == [outer]
    assert stored(reply["begin_step"]["session_id"])["parents"] == [outer]


async def test_a_workflow_cannot_be_nested_under_one_that_is_over(jobs, mode):
    async with jobs.agent(mode=mode) as agent:
        outer = (await start(agent, "outer"))["begin_step"]["session_id"]
        await agent.call("abort_workflow", explanation="Too late")
        start_inner = {"goal": "g", "job_name": "inner", "workflow_name": "main"}
        text = await agent.refused("start_workflow", **start_inner, parent_session_id=outer)
        assert f"Session '{outer}' of outer/main is over: aborted (Too late)" in text
        text = await agent.refused("start_workflow", **start_inner, parent_session_id="unknown")
        assert "Session 'unknown' not found" in text
        assert len(list(jobs.state.glob("session_*.json"))) == 1


async def test_a_packaged_workflow_nests_in_another_of_its_job(project, mode, work):
    """As the sample job means it: the paths are checked while the tour is written."""
    async with project.agent(mode=mode) as agent:
        outer = await agent.start("project_tour", "write_tour")
        inner = await agent.start("project_tour", "check_paths")
        steps, reply = await work.do(agent, inner)
        assert (steps, entries(reply)) == (["check"], ["project_tour/write_tour@survey"])
        steps, reply = await work.do(agent, outer)
        assert (steps, entries(reply)) == (["survey", "write"], [])


async def test_all_connections_to_one_server_in_memory_share_a_stack(jobs, mode):
    server = jobs.server()
    async with jobs.agent(server, mode=mode) as first, jobs.agent(server, mode=mode) as second:
        await start(first, "outer")
        assert entries(await start(second, "inner")) == ["outer/main@a", "inner/main@a"]


async def test_a_chain_of_workflows_that_overlap_does_not_grow(jobs, mode, stored):
    async with jobs.agent(mode=mode) as agent:
        previous = (await start(agent, "outer"))["begin_step"]["session_id"]
        for _ in range(5):
            following = (await start(agent, "inner"))["begin_step"]["session_id"]
            await agent.call("abort_workflow", explanation="e", session_id=previous)
            assert stored(following)["parents"] == [previous]
            previous = following


async def test_workflows_nested_deeper_than_can_be_stored_are_refused(jobs, mode, stored):
    async with jobs.agent(mode=mode) as agent:
        outer = (await start(agent, "outer"))["begin_step"]["session_id"]
        deepest = (await start(agent, "inner"))["begin_step"]["session_id"]
        file = jobs.root / ".deepwork/tmp" / f"session_{deepest}.json"
        file.write_text(json.dumps(stored(deepest) | {"parents": [outer] * 1000}))
        refusal = await agent.refused("start_workflow", goal="g", job_name="core", workflow_name="main")
        assert "1,000 workflows are open inside of each other already; nothing was started" in refusal
        assert "Finish or abort some" in refusal
        assert entries(await agent.finish(A)) == ["outer/main@a", "inner/main@b"]
