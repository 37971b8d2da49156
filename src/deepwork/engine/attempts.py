"""What reviews leave in a session: attempts, verdicts, and why there was none. Pure."""

from __future__ import annotations

from typing import Any

from deepwork.engine import evidence
from deepwork.engine.gate import Judgement, Outcome
from deepwork.engine.progress import hand_back, record, with_progress
from deepwork.engine.ruling import Kind, Ruling
from deepwork.models.reviews import NeedsWork, Passed
from deepwork.models.sessions import EventKind, Session, StepProgress

# Of more files than these, one digest over all is kept.
MAX_DIGESTS = 50


def begin_attempt(session: Session, step_id: str, *, now: str) -> Session:
    """Count an attempt before anything is judged (JOBS-REQ-001.4.11)."""
    number = _of(session, step_id).quality_attempts + 1
    session = _with(session, step_id, quality_attempts=number)
    return record(session, now, EventKind.ATTEMPT, step_id, {"number": number})


def give_back(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Count an attempt no more, for the work was not judged."""
    number = max(0, _of(session, step_id).quality_attempts - 1)
    session = _with(session, step_id, quality_attempts=number)
    return record(session, now, EventKind.ATTEMPT_GIVEN_BACK, step_id, {"reason": reason})


def keep(session: Session, step_id: str, judgement: Judgement, *, now: str) -> Session:
    """Write down every verdict, and every reason why there was none."""
    for outcome in judgement.outcomes:
        if isinstance(outcome.verdict, Passed | NeedsWork):
            session = record(session, now, EventKind.VERDICT, step_id, _verdict(outcome, judgement))
        elif outcome.error:
            session = record(session, now, EventKind.INFRASTRUCTURE, step_id, _failure(outcome))
    for name in judgement.skipped:
        session = record(session, now, EventKind.REVIEW_SKIPPED, step_id, {"run_each": name, "reason": "no file"})
    return session


def apply(session: Session, step_id: str, judgement: Judgement, ruling: Ruling, *, now: str) -> Session:
    """Bring the counts of a step that goes on up to date."""
    failures = _of(session, step_id).runner_failures + 1 if ruling.kind is Kind.NO_VERDICT else 0
    session = _with(session, step_id, runner_failures=failures)
    for verdict in judgement.handed_back if ruling.kind is Kind.HANDED_BACK else ():
        session = hand_back(session, step_id, verdict.feedback, now=now)
    return session if ruling.kind.counts else give_back(session, step_id, ruling.kind, now=now)


def passed_before(session: Session, step_id: str) -> set[str]:
    """Give the keys of what has passed in this step, and was not swapped meanwhile."""
    return {
        entry.detail["key"]
        for entry in session.history
        if (entry.kind, entry.step_id) == (EventKind.VERDICT, step_id)
        and entry.detail.get("passed") is True
        and not entry.detail.get("changed")
    }


def _verdict(outcome: Outcome, judgement: Judgement) -> dict[str, Any]:
    one, verdict = outcome.evaluation, outcome.verdict
    usage = getattr(verdict, "usage", None)
    judged = evidence.digests(judgement.evidence, one.task.files)
    seen = [path for path in judgement.changed if path in one.task.files or path not in _all_judged(judgement)]
    detail: dict[str, Any] = {
        "run_each": one.task.run_each,
        "file": one.target_file,
        "runner": one.reviewer.name,
        "passed": isinstance(verdict, Passed),
        "reused": outcome.reused,
        "feedback": getattr(verdict, "feedback", ""),
        "criteria": [result.model_dump() for result in getattr(verdict, "criteria", ())],
        "asked": list(one.task.criteria),
        "seconds": round(outcome.seconds, 3),
        "model": usage.model if usage else None,
        "input_tokens": usage.input_tokens if usage else None,
        "output_tokens": usage.output_tokens if usage else None,
        "cost_usd": usage.cost_usd if usage else None,
        "digests": dict(judged) if len(judged) <= MAX_DIGESTS else {"*": evidence.digest_of(judged)},
        "key": one.key,
    }
    return {**detail, "changed": seen} if seen else detail


def _all_judged(judgement: Judgement) -> set[str]:
    return {path for outcome in judgement.outcomes for path in outcome.evaluation.task.files}


def _failure(outcome: Outcome) -> dict[str, Any]:
    one, error = outcome.evaluation, outcome.error
    return {
        "run_each": one.task.run_each,
        "file": one.target_file,
        "runner": one.reviewer.name,
        "kind": type(error).__name__,
        "error": error.message if error else "",
        "seconds": round(outcome.seconds, 3),
    }


def _of(session: Session, step_id: str) -> StepProgress:
    return session.step_progress[step_id]


def _with(session: Session, step_id: str, **update: Any) -> Session:
    return with_progress(session, _of(session, step_id).model_copy(update=update))
