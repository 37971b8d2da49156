"""Which job and which workflow a name means, and what an agent reads when it means none."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def refused(project, job="demo", workflow="main"):
    async with project.agent() as agent:
        return await agent.refused("start_workflow", goal="g", job_name=job, workflow_name=workflow)


async def started(project, job="demo", workflow="main"):
    async with project.agent() as agent:
        return await agent.call("start_workflow", goal="g", job_name=job, workflow_name=workflow)


async def test_a_misspelt_job_is_answered_with_the_one_that_was_probably_meant(project):
    project.write_job("release_notes")
    text = await refused(project, job="release_note")
    assert text == "Job not found: 'release_note'; did you mean 'release_notes'?\nget_workflows lists all jobs."


async def test_a_job_that_resembles_none_is_answered_with_all_names(project):
    project.write_job("mine")
    text = await refused(project, job="zzz")
    assert text.startswith("Job not found: 'zzz'; valid: deepwork_jobs, mine, project_tour\n")


async def test_a_broken_job_is_told_with_file_line_and_where_to_correct_it(project):
    job_dir = project.write_job()
    job_file = job_dir / "job.yml"
    job_file.write_text(job_file.read_text().replace("type: file", "type: fiel", 1))
    text = await refused(project)
    assert text.startswith(f"Failed to parse job 'demo': Failed to load: {job_file}:")
    assert "fiel" in text
    assert f"Correct {job_file}, then call start_workflow again." in text


async def test_a_job_that_was_mended_can_be_started_at_once(project):
    good = (project.write_job() / "job.yml").read_text()
    project.write(".deepwork/jobs/demo/job.yml", "name: [")
    await refused(project)
    project.write(".deepwork/jobs/demo/job.yml", good)
    assert (await started(project))["begin_step"]["step_id"] == "a"


async def test_a_broken_job_of_the_project_is_not_replaced_by_a_packaged_one(project):
    project.write(".deepwork/jobs/project_tour/job.yml", "name: [")
    assert "Failed to parse job 'project_tour'" in await refused(project, "project_tour", "write_tour")


async def test_a_job_of_the_project_comes_before_a_packaged_one_of_its_name(project):
    project.write_job("project_tour", workflows={"write_tour": ["b"]})
    reply = await started(project, "project_tour", "write_tour")
    assert reply["begin_step"]["job_dir"] == str(project.jobs / "project_tour")


async def test_a_job_is_found_by_its_name_also_when_its_folder_is_called_otherwise(project):
    project.write_job("named", folder=project.jobs)
    (project.jobs / "named").rename(project.jobs / "folder")
    assert (await started(project, "named"))["begin_step"]["job_dir"] == str(project.jobs / "folder")
    assert (await started(project, "folder"))["begin_step"]["job_dir"] == str(project.jobs / "folder")


async def test_the_available_workflows_are_listed_in_the_order_of_the_file(project):
    project.write_job(workflows={"zeta": ["a"], "alpha": ["b"], "mid": ["a"]})
    text = await refused(project, workflow="main")
    assert text == "Workflow 'main' not found in job 'demo'; available: zeta, alpha, mid"


async def test_a_job_without_workflows_says_that_it_has_none(project):
    project.write_job(workflows={})
    assert await refused(project) == "Workflow 'main' not found in job 'demo'; it has no workflows"


async def test_the_workflow_of_that_name_is_taken_among_several(project):
    project.write_job(workflows={"first": ["a"], "second": ["b"]})
    assert (await started(project, workflow="second"))["begin_step"]["step_id"] == "b"


async def test_a_workflow_chosen_for_the_agent_is_named_in_a_notice(project):
    project.write_job()
    reply = await started(project, workflow="other")
    assert reply.get("notices", [])[0] == "Job 'demo' has no workflow 'other'; its only one, 'main', was started."
    assert reply["stack"] == [{"workflow": "demo/main", "step": "a"}]


async def test_a_workflow_that_was_named_rightly_needs_no_such_notice(project):
    project.write_job()
    reply = await started(project)
    assert (reply["stack"], reply.get("notices", [])) == ([{"workflow": "demo/main", "step": "a"}], [])


@pytest.mark.parametrize("name", ["Main", " main", "main\n"])
async def test_names_are_compared_as_they_are(project, name):
    project.write_job(workflows={"main": ["a"], "other": ["b"]})
    assert f"Workflow {name!r} not found" in await refused(project, workflow=name)


async def test_a_refused_start_leaves_nothing(project):
    project.write_job(workflows={"main": ["a"], "other": ["b"]})
    async with project.agent() as agent:
        for job, workflow in (("nothing", "main"), ("demo", "nothing")):
            await agent.refused("start_workflow", goal="g", job_name=job, workflow_name=workflow)
        assert "No active workflow session" in await agent.refused("finished_step", outputs={})
    assert list(project.state.glob("session_*")) == []
