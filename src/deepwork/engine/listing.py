"""What `get_workflows` answers."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from deepwork.errors import JobLoadError
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job
from deepwork.models.replies import ActiveSession, JobErrorInfo, JobInfo, WorkflowInfo, WorkflowList

CURE = "Correct the file; get_workflows reads it again at once."


class JobListing:
    """The jobs of a catalogue as agents read them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
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
        reply = WorkflowList(jobs=[*map(_info, jobs)], errors=[*map(_error_info, errors)])
        self._listed = jobs, errors, reply
        return reply


def _info(job: Job) -> JobInfo:
    workflows = [WorkflowInfo(name=flow.name, summary=flow.summary) for flow in job.definition.workflows]
    return JobInfo(name=job.name, summary=job.definition.summary, description=job.description, workflows=workflows)


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
