"""What a judgement leaves in the history of a session. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepwork.gate.fingerprints import digest_of, digests
from deepwork.gate.gate import Judgement, Outcome
from deepwork.models.reviews import NeedsWork, Passed
from deepwork.models.sessions import EventKind

# Of more files than these, one digest over all is kept.
MAX_DIGESTS = 50


def judgement_events(judgement: Judgement) -> Iterator[tuple[EventKind, dict[str, Any]]]:
    """Give every verdict, and every reason why there was none, as kind and detail of an entry."""
    for outcome in judgement.outcomes:
        if isinstance(outcome.verdict, Passed | NeedsWork):
            yield EventKind.VERDICT, _verdict(outcome, judgement)
        elif outcome.error:
            yield EventKind.INFRASTRUCTURE, _failure(outcome)
    for name in judgement.skipped:
        yield EventKind.REVIEW_SKIPPED, {"run_each": name, "reason": "no file"}


def _verdict(outcome: Outcome, judgement: Judgement) -> dict[str, Any]:
    evaluation, verdict = outcome.evaluation, outcome.verdict
    usage = getattr(verdict, "usage", None)
    judged = digests(judgement.fingerprints, evaluation.files)
    changed = [
        path for path in judgement.changed if path in evaluation.task.files or path not in _all_judged(judgement)
    ]
    detail: dict[str, Any] = {
        "run_each": evaluation.task.run_each,
        "file": evaluation.target_file,
        "runner": evaluation.reviewer.name,
        "passed": isinstance(verdict, Passed),
        "reused": outcome.reused,
        "feedback": getattr(verdict, "feedback", ""),
        "criteria": [result.model_dump() for result in getattr(verdict, "criteria", ())],
        "asked": list(evaluation.task.criteria),
        "seconds": round(outcome.seconds, 3),
        "model": usage.model if usage else None,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "cost_usd": usage.cost_usd if usage else None,
        "digests": dict(judged) if len(judged) <= MAX_DIGESTS else {"*": digest_of(judged)},
        "key": evaluation.key,
        "subject": evaluation.subject,
    }
    return {**detail, "changed": changed} if changed else detail


def _all_judged(judgement: Judgement) -> set[str]:
    return {path for outcome in judgement.outcomes for path in outcome.evaluation.task.files}


def _failure(outcome: Outcome) -> dict[str, Any]:
    evaluation, error = outcome.evaluation, outcome.error
    return {
        "run_each": evaluation.task.run_each,
        "file": evaluation.target_file,
        "runner": evaluation.reviewer.name,
        "kind": type(error).__name__,
        "error": error.message if error else "",
        "seconds": round(outcome.seconds, 3),
    }
