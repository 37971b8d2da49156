"""Verdicts that a session holds already: they answer for files that have not changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from deepwork.gate.work import Evaluation
from deepwork.models.history import HistoryEntry, Verdict
from deepwork.models.reviews import CriterionResult, NeedsWork, Passed


@dataclass(frozen=True)
class RecordedVerdicts:
    """The verdicts on one step that hold, the last on each subject.

    A reviewer that is asked again and again passes anything once. So work that failed stays failed until its files,
    its inputs or its criteria change, whatever the author notes about it. Work that passed is judged again with other
    notes.
    """

    by_subject: dict[str, Verdict] = field(default_factory=dict)
    passed_keys: frozenset[str] = frozenset()

    @classmethod
    def of(cls, history: Iterable[HistoryEntry], step_id: str) -> RecordedVerdicts:
        """Collect them from a history; what changed during its review was not judged."""
        verdicts = [
            entry.detail
            for entry in history
            if entry.step_id == step_id and isinstance(entry.detail, Verdict) and not entry.detail.changed
        ]
        # Verdicts of earlier releases name no subject.
        return cls(
            {verdict.subject: verdict for verdict in verdicts if verdict.subject is not None},
            frozenset(
                verdict.key for verdict in verdicts if verdict.passed and verdict.subject is None and verdict.key
            ),
        )

    def on(self, evaluation: Evaluation) -> Passed | NeedsWork | None:
        """Give the verdict on exactly this work; None if it has to be judged."""
        verdict = self.by_subject.get(evaluation.subject)
        if verdict is None:
            return Passed() if evaluation.key in self.passed_keys else None
        if not verdict.passed:
            return NeedsWork(verdict.feedback, _criteria(verdict))
        return Passed(verdict.feedback, _criteria(verdict)) if verdict.key == evaluation.key else None


def _criteria(verdict: Verdict) -> tuple[CriterionResult, ...]:
    return tuple(
        CriterionResult(criterion=answer.criterion, passed=answer.passed, feedback=answer.feedback)
        for answer in verdict.criteria
    )


NO_VERDICTS = RecordedVerdicts()
