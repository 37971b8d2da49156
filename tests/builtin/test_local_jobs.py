"""The folders in which jobs are looked for."""

from __future__ import annotations

import pytest

from deepwork.project.project import Project

pytestmark = pytest.mark.anyio

EXTRA = "DEEPWORK_ADDITIONAL_JOBS_FOLDERS"
PACKAGED = ["deepwork_jobs", "project_tour"]


@pytest.fixture
def extra(project, tmp_path):
    """Make an additional folder with one job, and give the folder."""

    def extra(folder, job):
        project.write_job(job, folder=tmp_path / folder)
        return tmp_path / folder

    return extra


def names(project):
    return [job.name for _, job in Project(project.root).catalogue.list().jobs]


def test_jobs_of_the_project_come_first_then_packaged_ones_then_those_of_additional_folders(
    project, extra, monkeypatch
):
    monkeypatch.setenv(EXTRA, f"{extra('one', 'a_job')}:{extra('two', 'another_job')}")
    project.write_job("zebra")
    assert names(project) == ["zebra", *PACKAGED, "a_job", "another_job"]


def test_an_empty_project_has_the_packaged_jobs(project):
    assert names(project) == PACKAGED


def test_folders_are_trimmed_and_empty_entries_dropped(project, extra, monkeypatch):
    project.write_job("in_the_root", folder=project.root)  # which is what an empty entry would mean
    monkeypatch.setenv(EXTRA, f": {extra('one', 'a_job')}  ::\t{extra('two', 'another_job')}\n: :")
    assert names(project) == [*PACKAGED, "a_job", "another_job"]


def test_a_folder_that_is_named_twice_counts_once(project, extra, monkeypatch):
    first = extra("one", "a_job")
    (first.parent / "link").symlink_to(first)
    monkeypatch.setenv(EXTRA, f"{first}:{first}/:{first.parent / 'link'}:{first.parent}/two/../one")
    listing = Project(project.root).catalogue.list()
    assert [job.name for _, job in listing.jobs] == [*PACKAGED, "a_job"]
    assert listing.errors == listing.shadowed == ()


def test_a_missing_folder_is_skipped(project, extra, monkeypatch):
    monkeypatch.setenv(EXTRA, f"/nowhere/at/all:{extra('one', 'a_job')}")
    assert names(project) == [*PACKAGED, "a_job"]


def test_a_relative_folder_starts_at_the_project(project, monkeypatch):
    project.write_job("a_job", folder=project.root / "more")
    monkeypatch.setenv(EXTRA, "more")
    assert names(project) == [*PACKAGED, "a_job"]


def test_the_first_of_two_additional_folders_has_the_name(project, extra, monkeypatch):
    first, second = extra("one", "a_job"), extra("two", "a_job")
    monkeypatch.setenv(EXTRA, f"{first}:{second}")
    catalogue = Project(project.root).catalogue
    assert catalogue.find("a_job").job_dir == first / "a_job"
    [(source, error)] = catalogue.list().errors
    assert (source, error.job_dir) == ("additional", second / "a_job")


def test_a_job_of_the_project_hides_a_packaged_one(project):
    job_dir = project.write_job("project_tour")
    catalogue = Project(project.root).catalogue
    assert catalogue.find("project_tour").job_dir == job_dir
    assert [(job.source, job.by) for job in catalogue.list().shadowed] == [("packaged", "project")]


def test_a_folder_of_jobs_that_leads_out_of_the_project_is_reported_and_not_used(project, extra):
    project.jobs.parent.mkdir()
    project.jobs.symlink_to(extra("elsewhere", "a_job"))
    listing = Project(project.root).catalogue.list()
    assert [job.name for _, job in listing.jobs] == PACKAGED
    assert "leads out of the project" in listing.errors[0][1].message


async def test_jobs_of_all_folders_can_be_started(project, extra, monkeypatch):
    monkeypatch.setenv(EXTRA, str(extra("one", "a_job")))
    project.write_job("mine")
    async with project.agent() as agent:
        for job in ("mine", "a_job", "project_tour"):
            assert (await agent.start(job, "main" if job != "project_tour" else "write_tour"))["step_instructions"]


async def test_a_folder_whose_name_is_not_utf_8_does_not_spoil_the_answer(project):
    project.write_job("mine")
    project.write(b".deepwork/jobs/bad\xff/job.yml".decode(errors="surrogateescape"), "name: bad\n")
    async with project.agent() as agent:
        answer = await agent.call("get_workflows")
    assert [job["name"] for job in answer["jobs"]] == ["mine", *PACKAGED]
    [error] = answer["errors"]
    assert "bad" in error["job_name"]


async def test_every_kind_of_broken_job_is_listed_beside_the_good_one(project):
    project.write_job("good")
    project.write(".deepwork/jobs/a_syntax/job.yml", "name: [")
    project.write(".deepwork/jobs/b_empty/job.yml", "")
    project.write(".deepwork/jobs/c_latin/job.yml", b"\xe4")
    project.write(".deepwork/jobs/d_bomb/job.yml", "[" * 100_000)
    project.write(".deepwork/jobs/e_folder/job.yml/x", "")
    project.write(".deepwork/jobs/f_tag/job.yml", "a: !!python/object/apply:os.abort []\n")
    async with project.agent() as agent:
        answer = await agent.call("get_workflows")
        assert answer["jobs"][0]["name"] == "good"
        broken = ["a_syntax", "b_empty", "c_latin", "d_bomb", "e_folder", "f_tag"]
        assert [error["job_name"] for error in answer["errors"]] == broken
        assert (await agent.start("good"))["step_id"] == "a"
        for error in answer["errors"]:
            assert f"{error['job_dir']}/job.yml" in error["error"]
            text = await agent.refused("start_workflow", goal="g", job_name=error["job_name"], workflow_name="w")
            assert "Failed to parse job" in text
