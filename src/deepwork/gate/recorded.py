"""Verdicts that a session holds already: they answer for files that have not changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from deepwork.gate.work import Evaluation
from deepwork.models.reviews import CriterionResult, NeedsWork, Passed
from deepwork.models.sessions import EventKind, HistoryEntry


@dataclass(frozen=True)
class RecordedVerdicts:
    """The verdicts on one step that hold, the last on each subject.

    A reviewer that is asked again and again passes anything once. So work that failed stays failed until its files,
    its inputs or its criteria change, whatever the author notes about it. Work that passed is judged again with other
    notes.
    """

    by_subject: dict[str, dict[str, Any]] = field(default_factory=dict)
    passed_keys: frozenset[str] = frozenset()

    @classmethod
    def of(cls, history: Iterable[HistoryEntry], step_id: str) -> RecordedVerdicts:
        """Collect them from a history; what changed during its review was not judged."""
        details = [
            entry.detail
            for entry in history
            if (entry.kind, entry.step_id) == (EventKind.VERDICT, step_id) and not entry.detail.get("changed")
        ]
        # Verdicts of earlier releases name no subject.
        passed = [detail for detail in details if detail.get("passed") is True and "subject" not in detail]
        return cls(
            {str(detail["subject"]): detail for detail in details if "subject" in detail},
            frozenset(str(detail["key"]) for detail in passed if "key" in detail),
        )

    def on(self, evaluation: Evaluation) -> Passed | NeedsWork | None:
        """Give the verdict on exactly this work; None if it has to be judged."""
        detail = self.by_subject.get(evaluation.subject)
        if detail is None:
            return Passed() if evaluation.key in self.passed_keys else None
        if detail.get("passed") is not True:
            return NeedsWork(str(detail.get("feedback", "")), _criteria(detail))
        is_same = detail.get("key") == evaluation.key
        return Passed(str(detail.get("feedback", "")), _criteria(detail)) if is_same else None


def _criteria(detail: dict[str, Any]) -> tuple[CriterionResult, ...]:
    """Read the answers to the criteria; the file of a session may hold anything."""
    entries = detail.get("criteria")
    return tuple(
        CriterionResult(
            criterion=entry["criterion"],
            passed=entry["passed"],
            feedback=entry["feedback"] if isinstance(entry.get("feedback"), str) else None,
        )
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("criterion"), str) and isinstance(entry.get("passed"), bool)
    )


NO_VERDICTS = RecordedVerdicts()
