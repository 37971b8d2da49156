"""`deepwork jobs list`: the jobs that a server offers, and where each comes from."""

from __future__ import annotations

from typing import Any

import click

from deepwork.api import Job, JobLoadError, project_at
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import Styled, say, say_json, say_notices
from deepwork.programs.stdout import stdout_on_stderr


@click.command("list")
@path_option
@json_option
def list_jobs(root: str, as_json: bool) -> None:
    """List the jobs that a server of this project would offer, and where each comes from."""
    project = project_at(root)
    with stdout_on_stderr():
        listing = project.catalogue().list()
    say_notices(project.ineffective())
    if as_json:
        say_json(
            {
                "jobs": [{"source": source, **_facts(job)} for source, job in listing.jobs],
                "shadowed": [
                    {"source": hidden.source, "hidden_by": hidden.by, **_facts(hidden.job)}
                    for hidden in listing.shadowed
                ],
                "errors": [{"source": source, **_failure(error)} for source, error in listing.errors],
            }
        )
        return
    for source, job in listing.jobs:
        say(Styled(job.name, bold=True), f"  ({source})  {job.definition.summary}")
        for workflow in job.definition.workflows:
            say(f"    {workflow.name}: {workflow.summary}")
    for hidden in listing.shadowed:
        say(f"{hidden.job.name}  ({hidden.source})  hidden by the job of the same name in {hidden.by}")
    for _, error in listing.errors:
        first, *more_lines = error.message.split("\n")
        say(Styled("broken", "red"), "  ", first)
        for line in more_lines:
            say(line)
    if not (listing.jobs or listing.errors):
        say("No jobs. `deepwork init` creates a first one.")


def _facts(job: Job) -> dict[str, Any]:
    definition = job.definition
    return {
        "name": definition.name,
        "version": definition.version,
        "summary": definition.summary,
        "job_dir": str(job.job_dir),
        "workflows": [{"name": flow.name, "summary": flow.summary} for flow in definition.workflows],
        "errors": list(job.errors),
        "warnings": list(job.warnings),
    }


def _failure(error: JobLoadError) -> dict[str, str]:
    return {"job_name": error.job_name, "job_dir": str(error.job_dir), "error": error.message}
