"""`deepwork jobs`: for authors of job files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from deepwork.cli.groups import CommandGroup
from deepwork.cli.options import exact_path_option, json_option, path_option
from deepwork.cli.terminal import Styled, say, say_json, say_notices, say_text
from deepwork.errors import ConfigError, JobLoadError
from deepwork.jobs.parse import FILE_NAME, parse_job
from deepwork.loading.faults import stdout_on_stderr
from deepwork.models.jobs import Job
from deepwork.project.config import resolve_root
from deepwork.project.project import Project


@click.group(cls=CommandGroup, epilog="Example: deepwork jobs check .deepwork/jobs/my_job")
def jobs() -> None:
    """List and check job files."""


@jobs.command("list")
@path_option
@json_option
def list_jobs(root: str, as_json: bool) -> None:
    """List the jobs that a server of this project would offer, and where each comes from."""
    project = Project(root)
    with stdout_on_stderr():
        listing = project.catalogue.list()
    say_notices(project.notices())
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


@jobs.command("get-stack")
@exact_path_option
@click.option("--all", "everything", is_flag=True, help="All active sessions, not the ten newest.")
def get_stack(root: str, everything: bool) -> None:
    """Print the active sessions as JSON, for client hooks that restore context after compaction."""
    from deepwork.cli.get_stack import stack_report

    say_json(stack_report(Project(root), everything=everything))


@jobs.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@path_option
@json_option
def check(paths: tuple[Path, ...], root: str, as_json: bool) -> int:
    """Check job files: job folders, job.yml files, names of the project's jobs, or all jobs of the project.

    Prints `file:line: message` for every error and warning, and exits with 1 if there are errors.
    """
    results = [
        parse_job(folder) for folder in _job_folders(_named_or_given(paths, root) if paths else [_project_jobs(root)])
    ]
    errors = [error for result in results for error in _errors(result)]
    warnings = [warning for job in results if isinstance(job, Job) for warning in job.warnings]
    if as_json:
        report = {
            "checked": len(results),
            "errors": [_failure(error) for error in errors],
            "warnings": warnings,
        }
        say_json(report)
        return 1 if errors else 0
    for error in errors:
        say_text(error.message.removeprefix("Failed to load: "))
    for warning in warnings:
        say(f"{warning} (warning)")
    failed = len({error.job_dir for error in errors})
    summary = [
        f"{failed} with errors" if failed else "no errors",
        *([_counted(len(warnings), "warning")] * bool(warnings)),
    ]
    say(f"{_counted(len(results), 'job')} checked, {', '.join(summary)}.", err=True)
    return 1 if errors else 0


def _project_jobs(root: str) -> Path:
    """Give the folder of the project's jobs.

    Raises:
        ConfigError: There is none.
    """
    folder = resolve_root(root) / ".deepwork" / "jobs"
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}", hint="`deepwork init` creates it, with a first job.")
    return folder


def _named_or_given(paths: Iterable[Path], root: str) -> Iterator[Path]:
    """Replace the name of a job of the project by its folder; what lies in the current folder is meant first."""
    jobs = resolve_root(root) / ".deepwork" / "jobs"
    for path in paths:
        is_name = not os.path.lexists(path) and len(path.parts) == 1
        yield jobs / path if is_name and os.path.isdir(jobs / path) else path


def _errors(result: Job | JobLoadError) -> list[JobLoadError]:
    """Give what makes a job, or one of its steps, fail."""
    if isinstance(result, JobLoadError):
        return [result]
    return [JobLoadError(line, job_name=result.name, job_dir=result.job_dir) for line in result.errors]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else f'{noun}s'}"


def _job_folders(paths: Iterable[Path]) -> Iterator[Path]:
    """Replace a folder of jobs by its folders; other paths stay as they are."""
    for path in paths:
        listable = os.path.isdir(path) and os.access(path, os.R_OK | os.X_OK)
        if path.name == FILE_NAME or os.path.lexists(path / FILE_NAME) or not listable:
            yield path
            continue
        folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
        # What has no job in any folder below it is meant to be a job itself.
        is_folder_of_jobs = path.name == "jobs" or any(os.path.lexists(folder / FILE_NAME) for folder in folders)
        yield from folders if is_folder_of_jobs else [path]


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
