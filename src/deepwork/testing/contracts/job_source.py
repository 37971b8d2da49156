"""What every job source has to do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from deepwork.api import Job, JobSource
from deepwork.errors import JobLoadError
from deepwork.testing.contracts.contract import Contract

UNKNOWN = ("no_such_job", "", ".", "..", "../jobs", "a/b", "/etc", "with\0nul", "Größe", "x" * 5000)


class JobSourceContract(Contract):
    """Override `source`, with a source that has at least one good job.

    Override `broken_source` too, if a job of your source can be broken.
    """

    @pytest.fixture
    def source(self) -> JobSource:
        """Return the source to test."""
        raise NotImplementedError("override the fixture `source`")

    @pytest.fixture
    def broken_source(self) -> JobSource:
        """Return a source with at least one broken job; others may be good."""
        pytest.skip("`broken_source` is not overridden")

    def test_it_has_a_name_and_a_rank(self, source: JobSource) -> None:
        assert isinstance(source.name, str)
        assert source.name
        assert isinstance(source.rank, int)

    def test_it_gives_jobs_and_errors_only(self, source: JobSource) -> None:
        strange = [item for item in source.load() if not isinstance(item, Job | JobLoadError)]
        assert strange == []

    def test_it_has_a_good_job(self, source: JobSource) -> None:
        assert _jobs(source), "the contract needs a source with at least one good job"

    def test_no_name_comes_twice(self, source: JobSource) -> None:
        names = [job.name for job in _jobs(source)]
        assert sorted(names) == sorted(set(names))

    def test_a_job_is_found_by_its_name(self, source: JobSource) -> None:
        for job in _jobs(source):
            assert source.find(job.name) == job

    @pytest.mark.parametrize("name", UNKNOWN, ids=lambda name: repr(name[:12]))
    def test_an_unknown_job_is_none(self, source: JobSource, name: str) -> None:
        assert source.find(name) is None

    def test_the_same_jobs_come_every_time_in_the_same_order(self, source: JobSource) -> None:
        first = _jobs(source)
        for _ in range(5):
            assert _jobs(source) == first

    def test_several_threads_may_ask_at_once(self, source: JobSource) -> None:
        first = _jobs(source)

        def ask(_number: int) -> bool:
            return _jobs(source) == first and all(source.find(job.name) == job for job in first)

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(ask, range(40)))

    def test_every_workflow_has_steps_of_its_job(self, source: JobSource) -> None:
        for job in _jobs(source):
            step_ids = {step.id for step in job.definition.steps}
            for workflow in job.definition.workflows:
                assert set(workflow.step_ids) <= step_ids, f"{job.name}/{workflow.name}"

    def test_every_step_has_its_instructions_in_the_folder_of_the_job(self, source: JobSource) -> None:
        for job in _jobs(source):
            folder = job.job_dir.resolve()
            for step in job.definition.steps:
                file = (folder / step.instructions_file).resolve()
                assert file.is_file(), f"{job.name}: {step.instructions_file} is missing"
                assert file.is_relative_to(folder), f"{job.name}: {step.instructions_file} lies outside"

    def test_nothing_is_printed(self, source: JobSource, capfd: pytest.CaptureFixture[str]) -> None:
        """On stdio the output of the server is the protocol."""
        for job in _jobs(source):
            source.find(job.name)
        assert capfd.readouterr().out == ""

    def test_a_broken_job_is_an_error_beside_the_good_ones(self, broken_source: JobSource) -> None:
        errors = [item for item in broken_source.load() if isinstance(item, JobLoadError)]
        assert errors, "the source has a broken job, and gives no error"
        assert all(error.message.strip() for error in errors)

    def test_a_broken_job_is_found_as_an_error(self, broken_source: JobSource) -> None:
        """The error is not mistaken for a missing job."""
        errors = [item for item in broken_source.load() if isinstance(item, JobLoadError)]
        assert errors, "the source has a broken job, and gives no error"
        for error in errors:
            assert isinstance(broken_source.find(error.job_name), JobLoadError), error.job_name


def _jobs(source: JobSource) -> list[Job]:
    return [item for item in source.load() if isinstance(item, Job)]
