"""The job and the workflow that a name stands for."""

from __future__ import annotations

from deepwork.errors import EmptyWorkflow, JobLoadError, JobSourceError, UnknownJob, UnknownWorkflow
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job, Workflow
from deepwork.text import near, nearest


def choose_job(catalogue: Catalogue, job_name: str) -> Job:
    """Find a job by its name.

    Raises:
        UnknownJob: It does not exist, or its file is broken.
    """
    job = catalogue.find(job_name)
    if job is None:
        raise _unknown_job(catalogue, job_name)
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
        meant = near(workflow_name.rpartition("/")[2], names)
        suggestion = f"; did you mean {meant!r}?" if meant else ""
        raise UnknownWorkflow(f"Workflow {workflow_name!r} not found in job {job.name!r}; {available}{suggestion}")
    if not chosen.steps:
        raise EmptyWorkflow(f"Workflow {chosen.name!r} of job {job.name!r} has no steps")
    return chosen, notices


def alternatives(catalogue: Catalogue, job_name: str, workflow_name: str) -> dict[str, tuple[str, str]]:
    """Return the workflows to offer when the given names match nothing and are not a typo.

    Returns:
        Names of a job and of a workflow, by the text that people are shown.
    """
    job = catalogue.find(job_name)
    if isinstance(job, JobLoadError):
        return {}
    jobs = [job] if job else [listed for _, listed in catalogue.list().jobs]
    names = [workflow.name for workflow in job.definition.workflows] if job else [listed.name for listed in jobs]
    unknown = workflow_name if job else job_name
    if unknown in names or (job and len(names) == 1) or near(unknown.rpartition("/")[2], names):
        return {}
    pairs = [(listed.name, workflow.name) for listed in jobs for workflow in listed.definition.workflows]
    same_workflow = [pair for pair in pairs if pair[1] == workflow_name]
    return {"/".join(pair): pair for pair in same_workflow or pairs}


def _unknown_job(catalogue: Catalogue, job_name: str) -> UnknownJob:
    """Return an error that suggests the intended job; a workflow's name, also as stacks show it, leads to its job."""
    listing = catalogue.list()
    jobs = [job for _, job in listing.jobs]
    workflow_name = job_name.rpartition("/")[2]
    calls = [
        f"job_name={job.name!r}, workflow_name={workflow_name!r}"
        for job in jobs
        if workflow_name in [workflow.name for workflow in job.definition.workflows]
        and job_name in (workflow_name, f"{job.name}/{workflow_name}")
    ]
    if calls:
        return UnknownJob(f"Job not found: {job_name!r}; that is a workflow. Call with {' or '.join(calls)}.")
    names = [job.name for job in jobs]
    problem = f"Job not found: {job_name!r}{nearest(job_name, names)}"
    broken = [error.message for _, error in listing.errors if isinstance(error, JobSourceError)]
    return UnknownJob("\n".join([problem, *broken]), hint="get_workflows lists all jobs.")
