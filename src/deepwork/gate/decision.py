"""What a judgement means for the step, and how the agent is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from deepwork.errors import ReviewExhausted, RunnerError, RunnerLimited, RunnerUnavailable, ToolError
from deepwork.gate.judging import Judgement, Outcome
from deepwork.gate.payload import printable
from deepwork.models.replies import PersonComment, WaitsFor
from deepwork.models.reviews import Limits, NeedsWork, ReviewResult, Waiting
from deepwork.text import one_line, visible

OVERRIDE = "quality_review_override_reason"
MAX_LABELS = 3
# Of what a runner says about its failure, which may quote a program.
MAX_CAUSE = 4000
WAYS = (
    "Have the work reviewed by another agent, a subagent say, and call finished_step with "
    "quality_review_override_reason saying what that review found; or ask the user to fix the runner, or to serve "
    "without --external-runner and quality_gate.runner, which is self-review."
)
STRICT_WAYS = (
    "Ask the user to fix the runner; the quality gate is strict, so only `deepwork sessions override`, which a person "
    "has to run in a terminal, moves on without a review."
)
_ASK_FIRST = (
    "Ask the user how to go on before you do anything else, and show them the feedback. If they want the work fixed, "
    "fix it: it is reviewed again when you call finished_step again. If they want to end the workflow, call "
    "abort_workflow. "
)
ASK = (
    f"{_ASK_FIRST}Only if they say that the step may pass as it is, call finished_step with {OVERRIDE}, in their words."
)
STRICT_ASK = (
    f"{_ASK_FIRST}If the step may pass as it is, they say so with `deepwork sessions override`, which a person has to "
    "run in a terminal."
)
ASK_USER = (
    "Only the user can fix that; `deepwork doctor` shows how. Tell them, and call finished_step again with the same "
    "outputs when they have."
)

AGAIN = "Call finished_step again with the same outputs."
AGAIN_LATER = "Call finished_step again with the same outputs once the limit has ended."


class DecisionKind(StrEnum):
    """How a judgement ends."""

    PASSED = "passed"
    FAILED = "failed"
    CHANGED = "changed"
    NO_VERDICT = "no_verdict"
    HANDED_BACK = "handed_back"
    WAITING = "waiting"
    ASKED_FOR = "asked_for"

    @property
    def counts(self) -> bool:
        """Whether the attempt counts; it does unless the work was not judged, or by a person."""
        return self in (DecisionKind.PASSED, DecisionKind.FAILED, DecisionKind.CHANGED)


@dataclass(frozen=True)
class Decision:
    """What follows from a judgement for the call that asked for it.

    Attributes:
        asks_user: Whether the agent is told to ask its user, who alone can say how the step goes on.
        comments: What people say of lines of the files.
        waits_for: The person for whom the step waits.
    """

    kind: DecisionKind
    feedback: str = ""
    failed_reviews: tuple[ReviewResult, ...] = ()
    notices: tuple[str, ...] = ()
    error: ToolError | None = None
    asks_user: bool = False
    comments: tuple[PersonComment, ...] = ()
    waits_for: WaitsFor | None = None


def decide(judgement: Judgement, limits: Limits, *, attempts: int, failures: int) -> Decision:
    """Return the decision that follows from a judgement.

    `attempts` counts those of this step, `failures` the calls in a row without a verdict; each includes this call.
    """
    notices = tuple(_notices(judgement))
    failed = tuple(map(_result, judgement.failed))
    feedback = "; ".join(result.feedback for result in failed)
    if judgement.changed:
        paths = ", ".join(printable(path) for path in judgement.changed[:20])
        text = (
            f"Changed while they were reviewed, so that no verdict holds for them as they are now: {paths}. Leave "
            "files alone during a review, and call finished_step again."
        )
        return Decision(DecisionKind.CHANGED, "; ".join(filter(None, [text, feedback])), failed, notices)
    if failed and attempts >= limits.attempts:
        error = ReviewExhausted(
            f"Quality gate failed after {attempts} attempts: {feedback}",
            hint=STRICT_ASK if limits.strict else ASK,
        )
        return Decision(DecisionKind.FAILED, feedback, failed, notices, error, asks_user=True)
    if failed:
        count = f"Attempt {attempts} of {limits.attempts}."
        return Decision(DecisionKind.FAILED, feedback, failed, (count, *notices))
    if judgement.broken:
        return _no_verdict(judgement, limits, failures, notices)
    if judgement.waiting:
        return Decision(DecisionKind.WAITING, "\n".join(dict.fromkeys(map(_asked, judgement.waiting))), (), notices)
    if judgement.handed_back:
        text = "\n\n".join(hand_back.verdict.feedback for hand_back in judgement.handed_back)
        return Decision(DecisionKind.HANDED_BACK, text, (), notices)
    return Decision(DecisionKind.PASSED, notices=notices)


def _no_verdict(judgement: Judgement, limits: Limits, failures: int, notices: tuple[str, ...]) -> Decision:
    broken = judgement.broken
    causes = "; ".join(dict.fromkeys(map(_cause, broken)))
    cures = [outcome.error.hint for outcome in broken if outcome.error and outcome.error.hint]
    if judgement.untrusted:
        labels = ", ".join(map(printable, judgement.untrusted[:MAX_LABELS]))
        cures.append(f"Without effect until the user runs `deepwork trust`: {labels}.")
    if failures >= limits.failures:
        ways = STRICT_WAYS if limits.strict else WAYS
        error = RunnerError(
            f"The quality gate got no verdict in {failures} calls in a row. {causes}",
            hint=" ".join(dict.fromkeys([*cures, ways])),
        )
        return Decision(DecisionKind.NO_VERDICT, causes, (), notices, error, asks_user=True)
    only_user_can_help = all(isinstance(outcome.error, RunnerUnavailable) for outcome in broken)
    is_limited = any(isinstance(outcome.error, RunnerLimited) for outcome in broken)
    sentences = [
        f"The reviewer gave no verdict: the work was not judged, and the attempt does not count. {causes}.",
        *cures,
        ASK_USER if only_user_can_help else AGAIN_LATER if is_limited else AGAIN,
    ]
    feedback = " ".join(dict.fromkeys(sentences))
    return Decision(DecisionKind.NO_VERDICT, feedback, (), notices, asks_user=only_user_can_help)


def _notices(judgement: Judgement) -> Iterable[str]:
    reused = [outcome for outcome in judgement.outcomes if outcome.reused]
    failed = [outcome for outcome in reused if isinstance(outcome.verdict, NeedsWork)]
    if passed := [outcome for outcome in reused if outcome not in failed]:
        yield f"Passed before and unchanged, so not reviewed again: {_names(passed)}."
    if failed:
        yield f"Failed before and unchanged, so not reviewed again: {_names(failed)}."
    told = {outcome.evaluation.reviewer.name: outcome.proven.notice for outcome in judgement.outcomes if outcome.proven}
    broken = {outcome.evaluation.reviewer.name for outcome in judgement.broken}
    yield from (notice for name, notice in told.items() if notice and name not in broken)
    if judgement.skipped:
        yield f"Not reviewed, because nothing was submitted for it: {visible(', '.join(judgement.skipped))}."
    if judgement.broken and (judgement.failed or judgement.changed):
        yield "; ".join(dict.fromkeys(map(_cause, judgement.broken)))


def _cause(outcome: Outcome) -> str:
    evaluation = outcome.evaluation
    text = one_line(outcome.error.message, MAX_CAUSE) if outcome.error else ""
    return f"No verdict of {evaluation.reviewer.name!r} on {printable(evaluation.name)}: {text.removesuffix('.')}"


def _asked(outcome: Outcome) -> str:
    return outcome.verdict.text if isinstance(outcome.verdict, Waiting) else ""


def _names(outcomes: list[Outcome]) -> str:
    names = [printable(outcome.evaluation.name) for outcome in outcomes]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _result(outcome: Outcome) -> ReviewResult:
    verdict = outcome.verdict
    return ReviewResult(
        review_run_each=outcome.evaluation.task.run_each,
        target_file=outcome.evaluation.target_file,
        passed=False,
        feedback=getattr(verdict, "feedback", ""),
        criteria_results=list(getattr(verdict, "criteria", ())),
        findings=list(getattr(verdict, "findings", ())),
    )
