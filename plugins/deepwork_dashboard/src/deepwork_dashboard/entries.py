"""What pages show of the entries of a history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepwork.api import Session, history
from deepwork.models.history import HistoryEntry
from deepwork.models.sessions import StepProgress
from deepwork.sessions.standing import numbered
from deepwork_dashboard.answers import Mapped, iso_text


def author_of(entry: HistoryEntry) -> str | None:
    """Return the person, or the agent of a run, that an entry of a history names; None without a name."""
    detail = entry.detail
    match detail:
        case history.Override():
            return detail.user or detail.principal
        case history.Note():
            return detail.by
        case history.Verdict() if detail.by:
            return entry.stored.get("user") or entry.stored.get("principal") or detail.by
        case history.StepCompleted() | history.Waiting():
            return detail.agent
    return None


def reported_files(session: Session, step_id: str) -> Iterator[str]:
    """Return the files of reports of a step, accepted or not: a person may have to decide about them."""
    for entry in session.history:
        if entry.step_id == step_id and isinstance(entry.detail, history.Attempt | history.OverrideAsked):
            yield from entry.detail.files or ()


def judged_digest(session: Session, step_id: str, path: str) -> str | None:
    """Return the digest of a file as it was judged last at a step; None if it was not."""
    for entry in reversed(session.history):
        if entry.step_id == step_id and isinstance(entry.detail, history.Verdict) and path in entry.detail.digests:
            return entry.detail.digests[path]
    return None


def override_of(entries: list[HistoryEntry], progress: StepProgress | None) -> Mapped | None:
    """Return how a step passed without a review; None if it did not."""
    for entry in reversed(entries):
        match entry.detail:
            case history.SelfReview(reason=reason):
                return {"at": iso_text(entry.at), "reason": reason, "by": "self_review", "who": None}
            case history.Override() as override:
                who = override.user or override.principal
                by = override.by or "agent"
                return {"at": iso_text(entry.at), "reason": override.reason, "by": by, "who": who}
    reason = progress.override_reason if progress else None
    return {"at": None, "reason": reason, "by": "agent", "who": None} if reason else None


def reviews_of(session: Session, step_id: str, declared: Any) -> list[Mapped]:
    """Return every verdict, and every review without one, with the number of its attempt."""
    questions = {
        name: question
        for review in (declared.reviews if declared else ())
        for name, question in review.quality_criteria.items()
    }
    return [
        {"at": iso_text(entry.at), "attempt": attempt or None, **_review(entry.detail, questions)}
        for attempt, entry in numbered(session, step_id)
        if isinstance(entry.detail, history.Verdict | history.NoVerdict)
    ]


def _review(conclusion: history.Verdict | history.NoVerdict, questions: dict[str, str]) -> Mapped:
    verdict = conclusion if isinstance(conclusion, history.Verdict) else None
    error = conclusion if isinstance(conclusion, history.NoVerdict) else None
    return {
        "run_each": conclusion.run_each,
        "file": conclusion.file,
        "runner": conclusion.runner,
        "seconds": conclusion.seconds,
        "model": verdict.model if verdict else None,
        "input_tokens": verdict.input_tokens if verdict else None,
        "output_tokens": verdict.output_tokens if verdict else None,
        "cost_usd": verdict.cost_usd if verdict else None,
        "passed": verdict.passed if verdict else None,
        "reused": verdict.reused if verdict else False,
        "feedback": verdict.feedback if verdict else "",
        "error": error.error if error else None,
        "error_kind": error.error_kind if error else None,
        "proof": conclusion.proof.model_dump() if conclusion.proof else None,
        "findings": [finding.model_dump() for finding in (verdict.findings if verdict else ())],
        "criteria": [
            {
                "criterion": answer.criterion,
                "passed": answer.passed,
                "feedback": answer.feedback,
                "question": questions.get(answer.criterion),
            }
            for answer in (verdict.criteria if verdict else ())
        ],
    }
