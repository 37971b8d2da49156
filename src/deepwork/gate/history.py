"""What a judgement leaves in the history of a session, and the verdicts there that answer for it again. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from deepwork.errors import RunnerLimited
from deepwork.gate.findings import read_findings
from deepwork.gate.fingerprints import digest_of, digests
from deepwork.gate.judging import Judgement, Outcome
from deepwork.gate.work import Evaluation
from deepwork.models import reviews
from deepwork.models.history import (
    AskedReview,
    Attempt,
    Criterion,
    Detail,
    Finding,
    HistoryEntry,
    NoVerdict,
    PersonAsked,
    Skipped,
    Verdict,
)
from deepwork.models.reviews import CriterionResult, NeedsWork, Passed, Waiting

# Of more files than these, one digest over all is kept.
MAX_DIGESTS = 50


def judgement_events(judgement: Judgement, *, asks_user: bool = False) -> Iterator[Detail]:
    """Yield the entries of every verdict, and of the reason for every missing one.

    `asks_user` is noted with each of them: the agent was told to ask its user.
    """
    update = {"asks_user": True} if asks_user else {}
    for outcome in judgement.outcomes:
        if isinstance(outcome.verdict, Passed | NeedsWork):
            yield _verdict(outcome, judgement).model_copy(update={**update, **_proof(outcome)})
        elif outcome.error:
            yield _failure(outcome).model_copy(update={**update, **_proof(outcome)})
    for name in judgement.skipped:
        yield Skipped(run_each=name, reason="no file")


def question(judgement: Judgement, work: str) -> PersonAsked:
    """Return the entry of a person who was asked, of everything in one; `work` is the digest of what was reported."""
    first = next(outcome.verdict for outcome in judgement.waiting if isinstance(outcome.verdict, Waiting))
    reviews = [
        AskedReview(
            run_each=evaluation.task.run_each,
            file=evaluation.target_file,
            runner=evaluation.reviewer.name,
            asked=[*evaluation.task.criteria],
            key=evaluation.key,
            subject=evaluation.subject,
        )
        for evaluation in (outcome.evaluation for outcome in judgement.waiting)
    ]
    return PersonAsked(reference=first.reference, text=first.text, work=work, reviews=reviews)


def _proof(outcome: Outcome) -> dict[str, Any]:
    return {"proof": outcome.proven.proof} if outcome.proven else {}


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
    update: dict[str, Any] = {"changed": changed} if changed else {}
    if findings := getattr(verdict, "findings", ()):
        update["findings"] = [Finding(**finding.model_dump()) for finding in findings]
    return detail.model_copy(update=update) if update else detail


def _all_judged(judgement: Judgement) -> set[str]:
    return {path for outcome in judgement.outcomes for path in outcome.evaluation.task.files}


def _failure(outcome: Outcome) -> NoVerdict:
    evaluation, error = outcome.evaluation, outcome.error
    detail = NoVerdict(
        run_each=evaluation.task.run_each,
        file=evaluation.target_file,
        runner=evaluation.reviewer.name,
        kind=type(error).__name__,
        error=error.message if error else "",
        seconds=round(outcome.seconds, 3),
    )
    if isinstance(error, RunnerLimited) and error.until:
        return detail.model_copy(update={"until": error.until.astimezone(UTC).isoformat(timespec="seconds")})
    return detail


@dataclass(frozen=True)
class RecordedVerdicts:
    """The verdicts on one step that hold, the last on each subject.

    A reviewer that is asked again and again passes anything once. So work that failed stays failed until its files,
    its inputs or its criteria change, even if the author writes other notes. Work that passed is judged again with
    other notes. The verdict of a person holds with any notes, and so do the passes that they had before them;
    what they ask for holds for all that was reported together, and is answered before anything is judged.
    """

    by_subject: dict[str, Verdict] = field(default_factory=dict)
    passed_keys: frozenset[str] = frozenset()
    settled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, history: Iterable[HistoryEntry], step_id: str) -> RecordedVerdicts:
        """Collect them from a history; of what changed during its review no verdict holds."""
        by_subject: dict[str, Verdict] = {}
        passed_keys: set[str] = set()
        judged: set[str] = set()  # before the person, in the same report
        settled: set[str] = set()
        for entry in history:
            verdict = entry.detail
            if entry.step_id != step_id:
                continue
            if isinstance(verdict, Attempt):
                judged = set()
            if not isinstance(verdict, Verdict) or verdict.changed:
                continue
            if verdict.by is not None:
                settled |= judged
                if not verdict.passed:
                    continue
            known = by_subject.get(verdict.subject or "")
            if known and known.by is not None and verdict.reused:
                continue  # it says again what the person has said
            if verdict.subject is not None:
                by_subject[verdict.subject] = verdict
                judged.add(verdict.subject)
            elif verdict.passed and verdict.key:  # of an earlier release, whose verdicts name no subject
                passed_keys.add(verdict.key)
        return cls(by_subject, frozenset(passed_keys), frozenset(settled))

    def on(self, evaluation: Evaluation) -> Passed | NeedsWork | None:
        """Return the verdict on exactly this work; None if it has to be judged."""
        verdict = self.by_subject.get(evaluation.subject)
        if verdict is None:
            return Passed() if evaluation.key in self.passed_keys else None
        if not verdict.passed:
            return NeedsWork(verdict.feedback, _criteria(verdict), findings=_findings(verdict))
        if verdict.key != evaluation.key and verdict.by is None and evaluation.subject not in self.settled:
            return None
        return Passed(verdict.feedback, _criteria(verdict), findings=_findings(verdict))


def _criteria(verdict: Verdict) -> tuple[CriterionResult, ...]:
    return tuple(
        CriterionResult(criterion=answer.criterion, passed=answer.passed, feedback=answer.feedback)
        for answer in verdict.criteria
    )


def _findings(verdict: Verdict) -> tuple[reviews.Finding, ...]:
    """Return the findings of a stored verdict; a file of a session may hold others than we write."""
    return tuple(read_findings([finding.model_dump() for finding in verdict.findings]))
