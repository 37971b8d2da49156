"""`deepwork jobs check`: everything that is wrong with jobs, for people, programs and forges."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from deepwork import __version__
from deepwork.builtin.authoring.findings import JobFinding
from deepwork.builtin.authoring.lint import lint
from deepwork.builtin.authoring.places import job_folders, project_folder
from deepwork.builtin.authoring.rules import rules
from deepwork.commands.options import json_option, path_option
from deepwork.commands.terminal import say, say_json, say_text
from deepwork.documents.sarif import SarifResult, sarif_log
from deepwork.text import visible

# Errors of steps; the job loads in spite of them.
OF_STEPS = {"missing-instructions", "unreadable-instructions", "huge-instructions"}


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@path_option
@json_option
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0, for editors and forges.")
@click.option("--info", "with_info", is_flag=True, help="Print also what is only worth knowing.")
def check(paths: tuple[Path, ...], root: str, as_json: bool, as_sarif: bool, with_info: bool) -> int:
    """Check job files: job folders, job.yml files, names of the project's jobs, or all jobs of the project.

    Prints `file:line: message` for every error and warning, and exits with 1 if there are errors.
    """
    if as_json and as_sarif:
        raise click.UsageError("Choose one of --json and --sarif.")
    folder = project_folder(root)
    by_job = {job_dir: lint(job_dir) for job_dir in job_folders(paths, folder)}
    findings = [finding for of_job in by_job.values() for finding in of_job]
    counted = [finding for finding in findings if not finding.is_ignored]
    errors = [finding for finding in counted if finding.level == "error"]
    warnings = [finding for finding in counted if finding.level == "warning"]
    if as_json:
        say_json(_report(by_job, counted))
    elif as_sarif:
        say_json(_sarif(findings, folder))
    else:
        for finding in errors:
            say_text(_line(finding))
        for finding in warnings:
            say(f"{finding.at} (warning)")
        for finding in counted if with_info else ():
            if finding.level == "info":
                say(f"{finding.at} (info)")
        failed = sum(any(finding.level == "error" for finding in of_job) for of_job in by_job.values())
        summary = [
            f"{failed} with errors" if failed else "no errors",
            *([_counted(len(warnings), "warning")] * bool(warnings)),
        ]
        say(f"{_counted(len(by_job), 'job')} checked, {', '.join(summary)}.", err=True)
    return 1 if errors else 0


def _line(finding: JobFinding) -> str:
    """Write a finding as a line; without a file, name the folder instead."""
    if finding.rule != "unreadable":
        return finding.at
    place = finding.file if finding.file.parent.is_dir() else finding.file.parent
    return f"{visible(str(place))} {finding.message}"


def _report(by_job: Mapping[Path, Sequence[JobFinding]], counted: Sequence[JobFinding]) -> dict[str, Any]:
    return {
        "checked": len(by_job),
        "errors": [failure for job_dir, findings in by_job.items() for failure in _failures(job_dir, findings)],
        "warnings": [finding.at for finding in counted if finding.level == "warning"],
        "findings": [finding.as_json for finding in counted],
    }


def _failures(job_dir: Path, findings: Sequence[JobFinding]) -> Iterator[dict[str, str]]:
    """Yield the errors as `get_workflows` tells them: one for a file that does not load, else one for each step."""
    lines = [_line(finding) for finding in findings if finding.level == "error"]
    name = os.path.basename(os.path.abspath(job_dir))
    if any(finding.level == "error" and finding.rule not in OF_STEPS for finding in findings):
        lines = ["Failed to load: " + "\n".join(lines)]
    for line in lines:
        yield {"job_name": name, "job_dir": str(job_dir), "error": line}


def _sarif(findings: Sequence[JobFinding], root: Path) -> dict[str, Any]:
    results = [
        SarifResult(
            finding.rule,
            finding.level,
            f"{finding.message}. {finding.cure}",
            finding.file,
            finding.line,
            suppressed="" if finding.is_ignored else None,
        )
        for finding in findings
    ]
    return sarif_log(
        results, {name: rule.model_dump() for name, rule in rules().items()}, root=root, version=__version__
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else f'{noun}s'}"
