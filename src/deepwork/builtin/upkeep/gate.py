"""`deepwork gate list` and `deepwork gate try`: what is reviewed, and reviews of files without a session."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import click

from deepwork.api import Passed, project_at
from deepwork.commands.options import json_option, path_option
from deepwork.commands.reviews import INDENT, say_review
from deepwork.commands.terminal import Styled, say, say_json, say_notices, say_text
from deepwork.errors import OutputError
from deepwork.models.reviews import Waiting
from deepwork.programs.stdout import stdout_on_stderr

WAITS = "In a session the step would wait for a person here; nobody was asked."


@click.command("list")
@path_option
@json_option
def list_reviews(root: str, as_json: bool) -> None:
    """List what is reviewed: the steps of all jobs that have reviews, with their criteria."""
    with stdout_on_stderr():
        jobs = project_at(root).catalogue().list().jobs
    reviews: list[dict[str, Any]] = [
        {"job": job.name, "step": step.id, "run_each": review.run_each, "criteria": review.quality_criteria}
        for _, job in jobs
        for step in job.definition.steps
        for review in step.reviews
    ]
    if as_json:
        say_json({"reviews": reviews})
        return
    for review in reviews:
        say(Styled(f"{review['job']} {review['step']}", bold=True), f"  ({review['run_each']})")
        for name, question in review["criteria"].items():
            say(f"    {name}: {question}")
    if not reviews:
        say("No step of any job is reviewed.", err=True)


@click.command("try")
@click.argument("job_name", metavar="JOB")
@click.argument("step_id", metavar="STEP")
@click.option("--file", "files", multiple=True, metavar="[OUTPUT=]PATH", help="A file to review; can be repeated.")
@click.option("--runner", metavar="NAME", help="Review runner (default: quality_gate.runner, else self).")
@click.option("--notes", metavar="TEXT", help="The author's notes on the work.")
@path_option
@json_option
def try_gate(
    job_name: str, step_id: str, files: tuple[str, ...], runner: str | None, notes: str | None, root: str, as_json: bool
) -> int:
    """Review files as a step's outputs, without a session. Exits with 1 unless every review passes.

    OUTPUT can be left out where the step has only one.
    """
    with stdout_on_stderr():
        step_gate = project_at(root).step_gate(job_name, step_id)
        try:
            outputs = step_gate.on_disk(step_gate.named(files))
        except OutputError as error:
            raise OutputError(error.message, hint="Give each file as --file OUTPUT=PATH.") from None
        judgement = anyio.run(_judgement, step_gate.judged(outputs, "try", runner=runner, notes=notes))
    say_notices(step_gate.notices())
    passed = _has_passed(judgement)
    if as_json:
        reviews = [*map(_facts, judgement.outcomes), *map(_handed_back_facts, judgement.handed_back)]
        report = {"passed": passed, "reviews": reviews, "changed": judgement.changed, "skipped": judgement.skipped}
        say_json(report)
        return 0 if passed else 1
    for outcome in judgement.outcomes:
        say_review(_facts(outcome), [finding.shown for finding in getattr(outcome.verdict, "findings", ())])
    for hand_back in judgement.handed_back:
        facts = _handed_back_facts(hand_back)
        say(f"not judged  {facts['run_each']}  by {facts['runner']}, which hands reviews back to the agent:")
        say_text(hand_back.verdict.feedback, INDENT)
        say(f"{INDENT}Name a reviewer with --runner to have it judged here.")
    for name in judgement.skipped:
        say(f"skipped    {name}: no file")
    for path in judgement.changed:
        say(f"changed    {path}, while it was reviewed")
    return 0 if passed else 1


async def _judgement(judged: AbstractAsyncContextManager[tuple[Any, object]]) -> Any:
    async with judged as (judgement, _):
        return judgement


def _has_passed(judgement: Any) -> bool:
    if judgement.handed_back or judgement.changed:
        return False
    return all(isinstance(outcome.verdict, Passed) for outcome in judgement.outcomes)


def _facts(outcome: Any) -> dict[str, Any]:
    evaluation, verdict = outcome.evaluation, outcome.verdict
    is_waiting = isinstance(verdict, Waiting)
    return {
        "run_each": evaluation.task.run_each,
        "file": evaluation.target_file,
        "runner": evaluation.reviewer.name,
        "passed": None if verdict is None or is_waiting else isinstance(verdict, Passed),
        "feedback": str(outcome.error) if outcome.error else WAITS if is_waiting else getattr(verdict, "feedback", ""),
        "criteria": [result.model_dump() for result in getattr(verdict, "criteria", ())],
        "findings": [finding.model_dump() for finding in getattr(verdict, "findings", ())],
        "seconds": round(outcome.seconds, 3),
    }


def _handed_back_facts(hand_back: Any) -> dict[str, Any]:
    return {
        "run_each": hand_back.tasks[0].run_each,
        "file": None,
        "runner": hand_back.reviewer.name,
        "passed": None,
        "feedback": hand_back.verdict.feedback,
        "criteria": [],
        "seconds": 0.0,
    }
