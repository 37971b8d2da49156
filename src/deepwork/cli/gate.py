"""`deepwork gate`: show past reviews, and review files without a session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import click

from deepwork.cli.extended import ExtendedGroup
from deepwork.commands.options import json_option, path_option, session_id_argument
from deepwork.commands.terminal import Styled, say, say_json, say_notices, say_text
from deepwork.engine.verification import proof_words
from deepwork.errors import OutputError, StateError
from deepwork.gate.gate import HandBack, Judgement, Outcome
from deepwork.models import history
from deepwork.models.history import EventKind, HistoryEntry
from deepwork.models.reviews import Finding, Passed, Waiting
from deepwork.models.sessions import Session
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.project.project import Project
from deepwork.project.session_access import read_session
from deepwork.project.step_gate import StepGate
from deepwork.sessions.standing import Passage, is_of_person

SHOWN_KINDS = (
    EventKind.ATTEMPT,
    EventKind.VERDICT,
    EventKind.INFRASTRUCTURE,
    EventKind.REVIEW_SKIPPED,
    EventKind.ATTEMPT_GIVEN_BACK,
    EventKind.REVIEW_HANDED_BACK,
    EventKind.PERSON_ASKED,
    EventKind.OVERRIDE,
    EventKind.SELF_REVIEW,
)
INDENT = " " * 11
WAITS = "In a session the step would wait for a person here; nobody was asked."


@click.group(cls=ExtendedGroup, epilog="Example: deepwork gate try my_job write --file report.md")
def gate() -> None:
    """Show what was reviewed and why, and try a step's reviews on files."""


@gate.command("list")
@path_option
@json_option
def list_reviews(root: str, as_json: bool) -> None:
    """List what is reviewed: the steps of all jobs that have reviews, with their criteria."""
    with stdout_on_stderr():
        jobs = Project(root).catalogue.list().jobs
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


@gate.command()
@session_id_argument
@click.argument("step_id", required=False)
@path_option
@json_option
@click.option("--sarif", "as_sarif", is_flag=True, help="Print SARIF 2.1.0, for editors and forges.")
def show(session_id: str, step_id: str | None, root: str, as_json: bool, as_sarif: bool) -> None:
    """Show what was reviewed in a session, or in one step of it: verdicts, missing ones, overrides."""
    project = Project(root)
    session = read_session(project, session_id)
    entries = [*_entries(session, step_id)]
    if as_sarif:
        from deepwork.cli.gate_sarif import session_log

        beginnings = [entry for entry in session.history if entry.kind == EventKind.STEP_BEGUN]
        say_json(session_log(session, sorted([*entries, *beginnings], key=session.history.index), project.workspace))
        return
    if as_json:
        say_json([entry.model_dump(mode="json") for entry in entries])
        return
    for entry in entries:
        _say_entry(entry)
    if not entries:
        say("Nothing was reviewed.", err=True)


@gate.command("try")
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
        step_gate = StepGate(Project(root), job_name, step_id)
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
        _say_review(_facts(outcome))
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


async def _judgement(judged: AbstractAsyncContextManager[tuple[Judgement, object]]) -> Judgement:
    async with judged as (judgement, _):
        return judgement


def _has_passed(judgement: Judgement) -> bool:
    if judgement.handed_back or judgement.changed:
        return False
    return all(isinstance(outcome.verdict, Passed) for outcome in judgement.outcomes)


def _facts(outcome: Outcome) -> dict[str, Any]:
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


def _handed_back_facts(hand_back: HandBack) -> dict[str, Any]:
    return {
        "run_each": hand_back.tasks[0].run_each,
        "file": None,
        "runner": hand_back.reviewer.name,
        "passed": None,
        "feedback": hand_back.verdict.feedback,
        "criteria": [],
        "seconds": 0.0,
    }


def _say_review(facts: Mapping[str, Any]) -> None:
    words = {True: ("passed", "green"), False: ("needs work", "red")}
    word, colour = words.get(facts["passed"], ("not judged", "yellow"))
    where = facts.get("file") or facts["run_each"]
    more = [f"{facts['seconds'] or 0:g} s", *([f"${facts['cost_usd']:.4f}"] if facts.get("cost_usd") else [])]
    more += [facts["model"]] if facts.get("model") else []
    again = ", as before: nothing has changed" if facts.get("reused") else ""
    say(Styled(f"{word:10}", colour), f" {where}  by {facts['runner']} ({', '.join(more)}){again}")
    if facts["feedback"]:
        say_text(str(facts["feedback"]), INDENT)
    for result in facts["criteria"]:
        mark = "✓" if result["passed"] else "✗"
        say_text(f"{result['criterion']}: {result['feedback'] or ''}".rstrip().removesuffix(":"), f"{INDENT}{mark} ")
    for finding in facts.get("findings", ()):
        say_text(Finding(**finding).shown, f"{INDENT}→ ")


def _entries(session: Session, step_id: str | None) -> Iterator[HistoryEntry]:
    if step_id is not None and step_id not in session.step_progress:
        step_ids = ", ".join(session.step_progress)
        raise StateError(f"session {session.session_id!r} has not begun a step {step_id!r}; it has begun: {step_ids}")
    for entry in session.history:
        if entry.kind in SHOWN_KINDS and step_id in (None, entry.step_id):
            yield entry


def _say_entry(entry: HistoryEntry) -> None:
    detail = entry.detail
    if isinstance(detail, history.Verdict):
        _say_review(detail.model_dump())
        if detail.passed:
            proof = detail.proof.model_dump() if detail.proof else {"result": None}
            say(f"{INDENT}{proof_words(**proof)}")
    elif isinstance(detail, history.NoVerdict):
        _say_review({**detail.model_dump(), "passed": None, "feedback": detail.error, "criteria": []})
    elif isinstance(detail, history.Attempt):
        say(Styled(f"{entry.step_id}, attempt {detail.number}  {entry.at}", bold=True))
    else:
        text = getattr(detail, "reason", None) or getattr(detail, "feedback", None) or ""
        say_text(str(text), f"{entry.step_id}, {_event(detail)}: ")


def _event(detail: history.Detail | history.Unknown) -> str:
    """Return in words what has become of a review."""
    match detail:
        case history.Override() if is_of_person(detail):
            return f"{Passage.PERMITTED}, asked by {detail.asked_by}" if detail.asked_by else Passage.PERMITTED
        case history.Override():
            return "overridden before any review" if detail.before_review else "overridden"
        case history.SelfReview():
            return "self-review passed, by the agent's word"
        case history.Skipped():
            return "skipped"
        case history.HandedBack():
            return "handed back to the agent"
        case history.PersonAsked():
            return f"a person was asked, {detail.reference}"
        case history.GivenBack():
            return "the attempt does not count"
    return "not as this release writes it"
