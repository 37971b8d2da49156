"""`deepwork gate show --sarif`: what was judged in a session, for editors and forges.

What passed has `kind: pass`, and what needs work is a `fail` of level error. What was not judged is `open`, and makes
the run unsuccessful, which no reader takes for green.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from deepwork import __version__
from deepwork.documents.sarif import SarifResult, sarif_log
from deepwork.models.history import Attempt, HistoryEntry, NoVerdict, Override, SelfReview, StepBegun, Verdict
from deepwork.models.jobs import Step
from deepwork.models.sessions import Session
from deepwork.text import one_line, visible_lines

_LEVELS: dict[str, Literal["error", "warning", "note"]] = {"warning": "warning", "note": "note"}


def session_log(session: Session, entries: Iterable[HistoryEntry], root: Path) -> dict[str, Any]:
    """Return the SARIF log of the reviews among entries of a session, as they stand after the last of each step."""
    rules: dict[str, dict[str, str]] = {}
    results: list[SarifResult] = []
    failures: list[str] = []
    steps: dict[str, list[HistoryEntry]] = {}
    for entry in entries:
        if entry.step_id:
            steps.setdefault(entry.step_id, []).append(entry)
    for step_id, of_step in steps.items():
        step = session.pinned.steps.get(step_id)
        if step is None or not step.reviews:
            continue
        rules.update(_rules(step))
        told = _Reviews(step, root).read(of_step)
        results += told.results
        failures += told.failures
    return sarif_log(results, rules, root=root, version=__version__, failures=failures)


def _rules(step: Step) -> Iterator[tuple[str, dict[str, str]]]:
    for review in step.reviews:
        for criterion, question in review.quality_criteria.items():
            yield (
                _rule(step, review.run_each, criterion),
                {"says": question, "cure": f"Criterion {criterion!r} of step {step.id!r}.", "level": "error"},
            )


def _rule(step: Step, run_each: str | None, criterion: str) -> str:
    return f"{step.id}/{run_each}/{criterion}"


@dataclass(frozen=True)
class _Told:
    results: list[SarifResult]
    failures: list[str]


@dataclass(frozen=True)
class _Reviews:
    """What the last report of a step has come to."""

    step: Step
    root: Path

    def read(self, entries: Iterable[HistoryEntry]) -> _Told:
        """Return the last results of every review, suppressed where the step has passed without them."""
        last: dict[tuple[Any, ...], Verdict | NoVerdict] = {}
        leave: Override | SelfReview | None = None
        for entry in entries:
            match entry.detail:
                case StepBegun():
                    last, leave = {}, None
                case Attempt():
                    last = {}
                case Verdict() | NoVerdict() as conclusion:
                    last[conclusion.run_each, conclusion.file, conclusion.runner] = conclusion
                case Override() | SelfReview() as detail:
                    leave = detail
        results = [result for conclusion in last.values() for result in self._results(conclusion)]
        judged = {conclusion.run_each for conclusion in last.values()}
        not_judged = [review.run_each for review in self.step.reviews if leave and review.run_each not in judged]
        results += [result for run_each in not_judged for result in self._open(run_each, None, "not judged")]
        missing = [conclusion for conclusion in last.values() if isinstance(conclusion, NoVerdict)]
        failures = [f"{self.step.id}: not judged: {one_line(conclusion.error)}" for conclusion in missing]
        if leave is None:
            return _Told(results, failures)
        reason = visible_lines(str(leave.reason or ""))
        suppressed = [
            result if result.kind == "pass" else replace(result, suppressed=reason, in_source=False)
            for result in results
        ]
        return _Told(suppressed, [])

    def _results(self, conclusion: Verdict | NoVerdict) -> Iterator[SarifResult]:
        if isinstance(conclusion, NoVerdict):
            yield from self._open(conclusion.run_each, conclusion.file, f"not judged: {one_line(conclusion.error)}")
            return
        if conclusion.changed:
            yield from self._open(conclusion.run_each, conclusion.file, "it changed while it was judged")
            return
        criteria = [answer.criterion for answer in conclusion.criteria]
        for answer in conclusion.criteria:
            rule = _rule(self.step, conclusion.run_each, answer.criterion)
            found = [finding for finding in conclusion.findings if finding.criterion == answer.criterion]
            text = visible_lines(answer.feedback or conclusion.feedback or "needs work")
            if answer.passed:
                yield SarifResult(rule, "note", "passed", self._file(conclusion.file), kind="pass")
            elif not any(finding.level == "error" for finding in found):
                yield SarifResult(rule, "error", text, self._file(conclusion.file))
        for finding in conclusion.findings:
            criterion = finding.criterion if finding.criterion in criteria else next(iter(criteria), None)
            if criterion is not None:
                yield SarifResult(
                    _rule(self.step, conclusion.run_each, criterion),
                    _LEVELS.get(finding.level, "error"),
                    visible_lines(finding.message),
                    self._file(finding.file),
                    finding.line,
                    end_line=finding.end_line,
                )

    def _open(self, run_each: str | None, file: str | None, text: str) -> Iterator[SarifResult]:
        for review in self.step.reviews:
            if review.run_each == run_each:
                for criterion in review.quality_criteria:
                    yield SarifResult(
                        _rule(self.step, run_each, criterion), "error", text, self._file(file), kind="open"
                    )

    def _file(self, file: str | None) -> Path | None:
        return self.root / file if file else None
