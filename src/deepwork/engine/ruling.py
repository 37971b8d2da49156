"""What a judgement means for the step, and how the agent is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from deepwork.engine.gate import Judgement, Outcome
from deepwork.engine.payload import printable
from deepwork.errors import ReviewExhausted, RunnerError, ToolError
from deepwork.models.reviews import ReviewResult


class Kind(StrEnum):
    """How a judgement ends. An attempt counts unless the work was not judged."""

    PASSED = "passed"
    FAILED = "failed"
    CHANGED = "changed"
    NO_VERDICT = "no_verdict"
    HANDED_BACK = "handed_back"

    @property
    def counts(self) -> bool:
        return self not in (Kind.NO_VERDICT, Kind.HANDED_BACK)


@dataclass(frozen=True)
class Ruling:
    """The decision on one call."""

    kind: Kind
    feedback: str = ""
    failed_reviews: tuple[ReviewResult, ...] = ()
    notices: tuple[str, ...] = ()
    error: ToolError | None = None


@dataclass(frozen=True)
class Limits:
    """Where a step stands with its limits, this call included."""

    attempts: int
    max_attempts: int
    failures: int
    max_failures: int


def decide(judgement: Judgement, limits: Limits) -> Ruling:
    """Say what comes of a judgement."""
    notices = tuple(_notices(judgement))
    failed = tuple(map(_result, judgement.failed))
    feedback = "; ".join(result.feedback for result in failed)
    if judgement.changed:
        shown = ", ".join(printable(path) for path in judgement.changed[:20])
        text = (
            f"Changed while they were reviewed, so that no verdict holds for them as they are now: {shown}. Leave "
            "files alone during a review, and call finished_step again."
        )
        return Ruling(Kind.CHANGED, "; ".join(filter(None, [text, feedback])), failed, notices)
    if failed and limits.attempts >= limits.max_attempts:
        error = ReviewExhausted(
            f"Quality gate failed after {limits.attempts} attempts: {feedback}",
            hint="Ask the user how to go on. Mended work is reviewed again when you call finished_step again; "
            "quality_review_override_reason moves on without a review, and abort_workflow ends the workflow.",
        )
        return Ruling(Kind.FAILED, feedback, failed, notices, error)
    if failed:
        count = f"Attempt {limits.attempts} of {limits.max_attempts}."
        return Ruling(Kind.FAILED, feedback, failed, (count, *notices))
    if judgement.broken:
        return _no_verdict(judgement.broken, limits, notices)
    if judgement.handed_back:
        text = "\n\n".join(verdict.feedback for verdict in judgement.handed_back)
        return Ruling(Kind.HANDED_BACK, text, (), notices)
    return Ruling(Kind.PASSED, notices=notices)


def _no_verdict(broken: list[Outcome], limits: Limits, notices: tuple[str, ...]) -> Ruling:
    causes = "; ".join(dict.fromkeys(map(_cause, broken)))
    cures = [one.error.hint for one in broken if one.error and one.error.hint]
    if limits.failures >= limits.max_failures:
        ways = (
            "Have the work reviewed by somebody else, a subagent say, and call finished_step with "
            "quality_review_override_reason saying what that review found; or ask the user to mend the runner, or to "
            "serve without --external-runner and quality_gate.runner, which is self-review."
        )
        error = RunnerError(
            f"The quality gate got no verdict in {limits.failures} calls in a row. {causes}",
            hint=" ".join(dict.fromkeys([*cures, ways])),
        )
        return Ruling(Kind.NO_VERDICT, causes, (), notices, error)
    text = " ".join(
        dict.fromkeys(
            [
                f"The reviewer gave no verdict: the work was not judged, and the attempt does not count. {causes}.",
                *cures,
                "Call finished_step again with the same outputs.",
            ]
        )
    )
    return Ruling(Kind.NO_VERDICT, text, (), notices)


def _notices(judgement: Judgement) -> Iterable[str]:
    if judgement.reused:
        yield f"Passed before and unchanged, so not reviewed again: {_names(judgement.reused)}."
    if judgement.skipped:
        yield f"Not reviewed, because nothing was submitted for it: {', '.join(judgement.skipped)}."
    if judgement.broken and (judgement.failed or judgement.changed):
        yield "; ".join(dict.fromkeys(map(_cause, judgement.broken)))


def _cause(outcome: Outcome) -> str:
    one = outcome.evaluation
    text = outcome.error.message if outcome.error else ""
    return f"No verdict of {one.reviewer.name!r} on {printable(one.name)}: {text.removesuffix('.')}"


def _names(outcomes: list[Outcome]) -> str:
    names = [printable(one.evaluation.name) for one in outcomes]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _result(outcome: Outcome) -> ReviewResult:
    verdict = outcome.verdict
    return ReviewResult(
        review_run_each=outcome.evaluation.task.run_each,
        target_file=outcome.evaluation.target_file,
        passed=False,
        feedback=getattr(verdict, "feedback", ""),
        criteria_results=list(getattr(verdict, "criteria", ())),
    )
