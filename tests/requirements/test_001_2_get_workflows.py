"""JOBS-REQ-001.2: `get_workflows`."""

from __future__ import annotations

import inspect

import pytest

pytestmark = pytest.mark.anyio


async def listing(project, **options):
    async with project.agent(**options) as agent:
        return await agent.call("get_workflows")


@pytest.mark.req("JOBS-REQ-001.2.1")
async def test_get_workflows_is_a_sync_tool(project):
    tool = await project.server().get_tool("get_workflows")
    assert not inspect.iscoroutinefunction(tool.fn)


@pytest.mark.req("JOBS-REQ-001.2.2")
async def test_get_workflows_has_no_parameters(project):
    async with project.agent() as agent:
        [tool] = [tool for tool in await agent.client.list_tools() if tool.name == "get_workflows"]
        assert tool.input_schema.get("properties", {}) == {}
        assert "jobs" in await agent.call("get_workflows")
        assert "job_name: is not a parameter" in await agent.refused("get_workflows", job_name="demo")


@pytest.mark.req("JOBS-REQ-001.2.3")
async def test_the_answer_lists_the_jobs_under_jobs(project):
    project.write_job("mine")
    answer = await listing(project)
    assert type(answer["jobs"]) is list
    assert "mine" in [job["name"] for job in answer["jobs"]]


@pytest.mark.req("JOBS-REQ-001.2.4")
async def test_a_job_has_name_summary_and_workflows(project):
    project.write_job("mine", summary="What it is for", workflows={"one": ["a"], "two": ["a", "b"]})
    [job] = [job for job in (await listing(project))["jobs"] if job["name"] == "mine"]
    assert job["summary"] == "What it is for"
    assert [workflow["name"] for workflow in job["workflows"]] == ["one", "two"]


@pytest.mark.req("JOBS-REQ-001.2.5")
async def test_a_workflow_has_name_and_summary(project):
    project.write_job("mine", workflows={"one": ["a"]})
    [job] = [job for job in (await listing(project))["jobs"] if job["name"] == "mine"]
    assert job["workflows"] == [{"name": "one", "summary": "Does one"}]


@pytest.mark.req("JOBS-REQ-001.2.6")
async def test_broken_jobs_are_listed_under_errors_beside_the_good_ones(project):
    project.write_job("good")
    project.write(".deepwork/jobs/broken/job.yml", "name: [")
    answer = await listing(project)
    assert "good" in [job["name"] for job in answer["jobs"]]
    assert [error["job_name"] for error in answer["errors"]] == ["broken"]


@pytest.mark.req("JOBS-REQ-001.2.6")
async def test_without_broken_jobs_errors_is_an_empty_list(project):
    assert (await listing(project))["errors"] == []


@pytest.mark.req("JOBS-REQ-001.2.7")
async def test_an_error_has_the_job_its_folder_and_what_is_wrong(project):
    project.write(".deepwork/jobs/broken/job.yml", "name: broken\nversion: 1.0\n")
    [error] = (await listing(project))["errors"]
    assert error["job_name"] == "broken"
    assert error["job_dir"] == str(project.jobs / "broken")
    assert f"{project.jobs / 'broken' / 'job.yml'}:2: version" in error["error"]


@pytest.mark.req("JOBS-REQ-001.2.8")
async def test_jobs_come_from_the_project_the_package_and_additional_folders(project, monkeypatch, tmp_path):
    project.write_job("mine")
    project.write_job("first", folder=tmp_path / "one")
    project.write_job("second", folder=tmp_path / "two")
    monkeypatch.setenv("DEEPWORK_ADDITIONAL_JOBS_FOLDERS", f"{tmp_path / 'one'}: :{tmp_path / 'two'}:")
    expected = ["mine", "deepwork_jobs", "project_tour", "first", "second"]
    names = [job["name"] for job in (await listing(project))["jobs"]]
    assert [name for name in names if name in expected] == expected
