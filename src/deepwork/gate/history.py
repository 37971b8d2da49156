"""What a judgement leaves in the history of a session. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from deepwork.gate.fingerprints import digest_of, digests
from deepwork.gate.gate import Judgement, Outcome
from deepwork.models.history import Criterion, Detail, NoVerdict, Skipped, Verdict
from deepwork.models.reviews import NeedsWork, Passed

# Of more files than these, one digest over all is kept.
MAX_DIGESTS = 50


def judgement_events(judgement: Judgement, *, asks_user: bool = False) -> Iterator[Detail]:
    """Make the entries of every verdict, and of every reason why there was none.

    `asks_user` is noted with each of them: the agent was told to ask its user.
    """
    update = {"asks_user": True} if asks_user else {}
    for outcome in judgement.outcomes:
        if isinstance(outcome.verdict, Passed | NeedsWork):
            yield _verdict(outcome, judgement).model_copy(update=update)
        elif outcome.error:
            yield _failure(outcome).model_copy(update=update)
    for name in judgement.skipped:
        yield Skipped(run_each=name, reason="no file")


def _verdict(outcome: Outcome, judgement: Judgement) -> Verdict:
    evaluation, verdict = outcome.evaluation, outcome.verdict
    usage = getattr(verdict, "usage", None)
    judged = digests(judgement.fingerprints, evaluation.files)
    changed = [
        path for path in judgement.changed if path in evaluation.task.files or path not in _all_judged(judgement)
    ]
    detail = Verdict(
        run_each=evaluation.task.run_each,
        file=evaluation.target_file,
        runner=evaluation.reviewer.name,
        passed=isinstance(verdict, Passed),
        reused=outcome.reused,
        feedback=getattr(verdict, "feedback", ""),
        criteria=[Criterion(**result.model_dump()) for result in getattr(verdict, "criteria", ())],
        asked=[*evaluation.task.criteria],
        seconds=round(outcome.seconds, 3),
        model=usage.model if usage else None,
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cost_usd=usage.cost_usd if usage else None,
        digests=dict(judged) if len(judged) <= MAX_DIGESTS else {"*": digest_of(judged)},
        key=evaluation.key,
        subject=evaluation.subject,
    )
    return detail.model_copy(update={"changed": changed}) if changed else detail


def _all_judged(judgement: Judgement) -> set[str]:
    return {path for outcome in judgement.outcomes for path in outcome.evaluation.task.files}


def _failure(outcome: Outcome) -> NoVerdict:
    evaluation, error = outcome.evaluation, outcome.error
    return NoVerdict(
        run_each=evaluation.task.run_each,
        file=evaluation.target_file,
        runner=evaluation.reviewer.name,
        kind=type(error).__name__,
        error=error.message if error else "",
        seconds=round(outcome.seconds, 3),
    )
