"""The jobs that ship with DeepWork, worked to the end over every kind of connection."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio

STEPS = {
    ("deepwork_jobs", "new_job"): ["design", "write_job", "try_job"],
    ("deepwork_jobs", "repair"): ["diagnose", "mend"],
    ("deepwork_jobs", "improve"): ["reflect", "apply"],
    ("project_tour", "write_tour"): ["survey", "write"],
    ("project_tour", "check_paths"): ["check"],
}


async def test_an_agent_completes_every_workflow_that_is_listed(connected, work):
    async with connected as agent:
        listing = await agent.call("get_workflows")
        assert listing["errors"] == []
        steps_of = {}
        for job in listing["jobs"]:
            for workflow in job["workflows"]:
                begin = await agent.start(job["name"], workflow["name"])
                steps, reply = await work.do(agent, begin)
                assert reply["stack"] == []
                assert reply["all_outputs"]
                steps_of[job["name"], workflow["name"]] = steps
    assert steps_of.items() >= STEPS.items()


async def test_every_review_of_the_packaged_jobs_shows_its_criteria_and_files(project, work):
    async with project.agent() as agent:
        for job, workflow in STEPS:
            begin = await agent.start(job, workflow)
            await work.do(agent, begin)
    assert len(work.reviews) == 5
    for text in work.reviews:
        assert "BEGIN OUTPUTS" in text
        assert "- work/0/" in text
        assert "- **" in text


async def test_no_instruction_of_the_packaged_jobs_is_empty(project, work):
    async with project.agent() as agent:
        for job, workflow in STEPS:
            begin = await agent.start(job, workflow)
            assert len(begin["step_instructions"]) > 100
            assert begin["common_job_info"]
            await agent.call("abort_workflow", explanation="Only looked at")
