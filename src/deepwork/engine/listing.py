"""What `get_workflows` answers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from pathlib import Path

from deepwork.errors import JobLoadError
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job
from deepwork.models.replies import ActiveSession, JobErrorInfo, JobInfo, WorkflowInfo, WorkflowList

CURE = "Correct the file; get_workflows reads it again at once."


class JobListing:
    """The jobs of a catalogue as agents read them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._infos: dict[Path, tuple[Job, JobInfo]] = {}
        self._listed: tuple[list[Job], list[JobLoadError], WorkflowList] | None = None

    def reply(self, active: list[ActiveSession], notices: list[str]) -> WorkflowList:
        """List all jobs and the job files with errors, beside the sessions that the caller may go on with."""
        return self._unchanging().model_copy(update={"active_sessions": active, "notices": notices})

    def _unchanging(self) -> WorkflowList:
        """List the jobs and the errors: the same lists for as long as nothing has changed."""
        listing = self._catalogue.list()
        jobs, errors = [job for _, job in listing.jobs], [error for _, error in listing.errors]
        if self._listed and _are_same(jobs, self._listed[0]) and _are_same(errors, self._listed[1]):
            return self._listed[2]
        reply = WorkflowList(jobs=[self._info(job) for job in jobs], errors=[_error_info(error) for error in errors])
        self._listed = jobs, errors, reply
        return reply

    def _info(self, job: Job) -> JobInfo:
        """Describe a job; one whose file has not changed is the same object, and its description is used again."""
        cached_job, info = self._infos.get(job.job_dir, (None, None))
        if info is None or cached_job is not job:
            workflows = [WorkflowInfo(name=flow.name, summary=flow.summary) for flow in job.definition.workflows]
            summary, description = job.definition.summary, job.description
            info = JobInfo(name=job.name, summary=summary, description=description, workflows=workflows)
            self._infos[job.job_dir] = job, info
        return info


def _are_same(items: Sequence[object], others: Sequence[object]) -> bool:
    """True if two lists have the same objects: a job whose file has not changed is the same object."""
    return len(items) == len(others) and all(map(operator.is_, items, others))


def _error_info(error: JobLoadError) -> JobErrorInfo:
    return JobErrorInfo(
        job_name=_encodable(error.job_name),
        job_dir=_encodable(str(error.job_dir)),
        error=_encodable(f"{error.message}\n{error.hint or CURE}"),
    )


def _encodable(text: str) -> str:
    """Make text that JSON can carry of a file name that is not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
