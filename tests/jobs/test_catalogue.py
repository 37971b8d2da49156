"""Which jobs are listed, and which is meant by a name."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepwork.api import Job, JobReader
from deepwork.builtin.local_jobs import FolderJobs
from deepwork.errors import JobLoadError
from deepwork.jobs.catalogue import Catalogue
from deepwork.testing import DeepworkProject

pytestmark = pytest.mark.anyio


@pytest.fixture
def catalogue(project):
    """Two sources, `first` with one folder and `second` with two, as `deepwork_job_sources` makes them."""
    return catalogue_of(project.root)


def catalogue_of(root):
    first = FolderJobs("first", 0, [JobReader(root / "1")])
    second = FolderJobs("second", 50, [JobReader(root / "2"), JobReader(root / "3")])
    return Catalogue([second, first])


def put(project, folder, name, job=None, **more):
    """Write a job of any name into a folder of any name; None stands for a broken one."""
    place = project.root / str(folder) / name
    if job is None:
        return project.write(place / "job.yml", "name: [").parent
    place.parent.mkdir(parents=True, exist_ok=True)
    return project.write_job(job, folder=project.root / "new", **more).rename(place)


def listed(catalogue):
    return [(source, job.job_dir.name, job.name) for source, job in catalogue.list().jobs]


def failed(catalogue):
    return [(source, error.job_name) for source, error in catalogue.list().errors]


def test_sources_are_asked_in_order_of_rank_and_folders_in_their_own(project, catalogue):
    put(project, 3, "a", "a")
    put(project, 2, "z", "z")
    put(project, 1, "m", "m")
    assert listed(catalogue) == [("first", "m", "m"), ("second", "z", "z"), ("second", "a", "a")]


def test_a_job_of_an_earlier_source_hides_one_of_the_same_name(project, catalogue):
    put(project, 1, "a", "a", summary="The first")
    hidden = put(project, 2, "a", "a")
    assert listed(catalogue) == [("first", "a", "a")]
    assert catalogue.find("a").definition.summary == "The first"
    [shadowed] = catalogue.list().shadowed
    assert (shadowed.job.job_dir, shadowed.source, shadowed.by) == (hidden, "second", "first")
    assert failed(catalogue) == []


def test_a_broken_job_is_reported_and_not_replaced_by_a_later_source(project, catalogue):
    put(project, 1, "a")
    put(project, 2, "a", "a")
    assert listed(catalogue) == []
    assert failed(catalogue) == [("first", "a")]
    assert isinstance(catalogue.find("a"), JobLoadError)
    assert [job.by for job in catalogue.list().shadowed] == ["first"]


def test_a_broken_job_of_a_later_source_hides_nothing(project, catalogue):
    put(project, 1, "a", "a")
    put(project, 2, "a")
    assert listed(catalogue) == [("first", "a", "a")]
    assert isinstance(catalogue.find("a"), Job)
    assert failed(catalogue) == [("second", "a")]


def test_a_job_is_found_by_its_name_where_its_folder_has_another(project, catalogue):
    job_dir = put(project, 1, "folder", "named")
    assert catalogue.find("named").job_dir == job_dir


def test_a_job_is_found_by_its_folder_where_no_job_has_that_name(project, catalogue):
    put(project, 1, "folder", "named")
    assert catalogue.find("folder").name == "named"


def test_a_job_of_that_name_comes_before_a_folder_of_that_name(project, catalogue):
    put(project, 1, "a", "b")
    put(project, 1, "c", "a")
    assert catalogue.find("a").job_dir.name == "c"


def test_a_job_of_that_name_in_a_later_source_comes_before_a_folder_of_that_name(project, catalogue):
    put(project, 1, "a", "b")
    put(project, 2, "a", "a")
    assert catalogue.find("a").job_dir == project.root / "2" / "a"


def test_the_second_of_two_jobs_with_one_name_is_an_error(project, catalogue):
    first = put(project, 1, "x", "same")
    put(project, 1, "y", "same")
    assert listed(catalogue) == [("first", "x", "same")]
    [(_, error)] = catalogue.list().errors
    assert error.job_name == "y"
    assert "'same'" in error.message
    assert str(first) in error.message
    assert catalogue.find("same").job_dir == first


def test_a_job_in_the_folder_of_its_name_wins_over_another_of_that_name(project, catalogue):
    """It decides without a look at the others, so it does in the list."""
    put(project, 1, "a_first", "same")
    put(project, 1, "same", "same")
    assert listed(catalogue) == [("first", "same", "same")]
    assert failed(catalogue) == [("first", "a_first")]
    assert catalogue.find("same").job_dir.name == "same"


def test_a_job_left_out_for_its_name_does_not_hide_one_that_bears_the_name_of_its_folder(project, catalogue):
    put(project, 1, "x", "same")
    put(project, 1, "y", "same")
    put(project, 2, "y", "y")
    assert listed(catalogue) == [("first", "x", "same"), ("second", "y", "y")]
    assert catalogue.find("y").job_dir == project.root / "2" / "y"


def test_a_broken_folder_decides_over_a_job_of_that_name(project, catalogue):
    put(project, 1, "a")
    put(project, 1, "b", "a")
    assert listed(catalogue) == []
    assert isinstance(catalogue.find("a"), JobLoadError)
    assert failed(catalogue) == [("first", "a"), ("first", "b")]


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_file_in_a_folder_of_jobs_does_not_hide_a_job_of_its_name(kind, project, catalogue):
    (project.root / "1").mkdir()
    (project.root / "1" / "a").write_text("") if kind == "file" else os.mkfifo(project.root / "1" / "a")
    put(project, 2, "a", "a")
    assert listed(catalogue) == [("second", "a", "a")]
    assert isinstance(catalogue.find("a"), Job)


def test_an_unknown_name_finds_nothing(project, catalogue):
    put(project, 1, "a", "a")
    assert catalogue.find("b") is None


SMALL = (
    "{name: NAME, version: 1.0.0, summary: s, common_job_info_provided_to_all_steps_at_runtime: c, "
    "steps: [{id: a, name: a, description: d, instructions_file: a.md, outputs: {}, reviews: []}]}"
)
NAMES = st.sampled_from(["a", "b", "c", "d"])
FOLDER = st.dictionaries(NAMES, st.one_of(NAMES, st.sampled_from(["broken", "file", "empty"])), max_size=4)


@settings(max_examples=100)
@given(st.tuples(FOLDER, FOLDER, FOLDER))
def test_what_is_listed_is_exactly_what_can_be_started(folders):
    with TemporaryDirectory() as directory:
        project = DeepworkProject(Path(directory))
        places = 0
        for number, folder in enumerate(folders, 1):
            for name, content in folder.items():
                path = {"file": name, "empty": f"{name}/notes.md"}.get(content, f"{name}/job.yml")
                project.write(f"{number}/{path}", "" if content == "broken" else SMALL.replace("NAME", content))
                places += path.endswith(".yml")
        catalogue = catalogue_of(project.root)
        listing = catalogue.list()
        names = [job.name for _, job in listing.jobs]
        assert len(names) == len(set(names))
        assert len(listing.jobs) + len(listing.errors) + len(listing.shadowed) == places
        for _, job in listing.jobs:
            assert catalogue.find(job.name) is job
        for name in {"a", "b", "c", "d"} - set(names):
            job = catalogue.find(name)
            assert not isinstance(job, Job) or job.name != name


async def test_starting_a_job_does_not_read_the_others(project, caplog):
    """Reading `other` would log that its folder has another name."""
    caplog.set_level(logging.WARNING, "deepwork.jobs")
    project.write_job("mine")
    put(project, ".deepwork/jobs", "other", "another")
    async with project.agent() as agent:
        await agent.start("mine")
        assert not [record for record in caplog.records if record.name == "deepwork.jobs"]
        await agent.call("get_workflows")
        assert [record for record in caplog.records if record.name == "deepwork.jobs"]


async def test_every_listed_job_can_be_started(project):
    put(project, ".deepwork/jobs", "folder", "named")
    put(project, ".deepwork/jobs", "project_tour", "other")
    put(project, ".deepwork/jobs", "broken")
    async with project.agent() as agent:
        jobs = (await agent.call("get_workflows"))["jobs"]
        assert {"named", "other", "project_tour", "deepwork_jobs"} == {job["name"] for job in jobs}
        for job in jobs:
            begin = await agent.start(job["name"], job["workflows"][0]["name"])
            assert begin["step_instructions"]


async def test_a_broken_job_of_the_project_is_reported_at_start_and_not_replaced_by_the_packaged_one(project):
    put(project, ".deepwork/jobs", "project_tour")
    async with project.agent() as agent:
        answer = await agent.refused("start_workflow", goal="g", job_name="project_tour", workflow_name="write_tour")
        assert "Failed to parse job 'project_tour'" in answer
        assert "job.yml:2: " in answer
        listing = await agent.call("get_workflows")
        assert [error["job_name"] for error in listing["errors"]] == ["project_tour"]
        assert "project_tour" not in [job["name"] for job in listing["jobs"]]
