"""The job and the workflow that a name stands for."""

from __future__ import annotations

from deepwork.errors import EmptyWorkflow, JobLoadError, JobSourceError, UnknownJob, UnknownWorkflow
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job, Workflow
from deepwork.text.suggest import nearest


def choose_job(catalogue: Catalogue, job_name: str) -> Job:
    """Find a job by its name.

    Raises:
        UnknownJob: There is none, or its file is broken.
    """
    job = catalogue.find(job_name)
    if job is None:
        listing = catalogue.list()
        problem = f"Job not found: {job_name!r}{nearest(job_name, [job.name for _, job in listing.jobs])}"
        broken = [error.message for _, error in listing.errors if isinstance(error, JobSourceError)]
        raise UnknownJob("\n".join([problem, *broken]), hint="get_workflows lists all jobs.")
    if isinstance(job, JobLoadError):
        raise UnknownJob(
            f"Failed to parse job {job_name!r}: {job.message}",
            hint=f"Correct {job.job_dir / 'job.yml'}, then call start_workflow again.",
        )
    return job


def choose_workflow(job: Job, workflow_name: str) -> tuple[Workflow, list[str]]:
    """Find a workflow of a job; a job's only workflow is found under any name (JOBS-REQ-001.3.5).

    Returns:
        The workflow, and notices for the agent.

    Raises:
        UnknownWorkflow: The job has others, or none at all.
        EmptyWorkflow: There is nothing to do in it.
    """
    workflows = job.definition.workflows
    names = [workflow.name for workflow in workflows]
    notices: list[str] = []
    if workflow_name in names:
        chosen = workflows[names.index(workflow_name)]
    elif len(workflows) == 1:
        chosen = workflows[0]
        notices.append(
            f"Job {job.name!r} has no workflow {workflow_name!r}; its only one, {chosen.name!r}, was started."
        )
    else:
        available = f"available: {', '.join(names)}" if names else "it has no workflows"
        raise UnknownWorkflow(f"Workflow {workflow_name!r} not found in job {job.name!r}; {available}")
    if not chosen.steps:
        raise EmptyWorkflow(f"Workflow {chosen.name!r} of job {job.name!r} has no steps")
    return chosen, notices
