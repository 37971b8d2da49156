"""Verdicts are checked, not trusted: how a reviewer's answer is read, and which of it may be believed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from deepwork.errors import BadVerdict
from deepwork.gate.findings import FINDINGS_SCHEMA, decoded, read_findings
from deepwork.models.reviews import CriterionResult, Finding, HandedBack, NeedsWork, Passed, Usage, Verdict, Waiting
from deepwork.text import one_line, quoted, shorten, visible, visible_lines

NO_FEEDBACK = "No feedback provided"
MAX_FEEDBACK = 32 * 1024
MAX_MODEL = 200
MAX_NAME = 100
MAX_COUNT = 10**12


def verdict_schema(criteria: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of an answer that judges every one of these criteria."""
    names = list(criteria)
    result = {
        "type": "object",
        "properties": {
            "criterion": {"type": "string", "enum": names},
            "passed": {"type": "boolean"},
            "feedback": {"type": ["string", "null"]},
        },
        "required": ["criterion", "passed"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "passed": {"type": "boolean"},
            "feedback": {"type": "string"},
            "criteria_results": {"type": "array", "items": result, "minItems": len(names), "maxItems": len(names)},
            "findings": FINDINGS_SCHEMA,
        },
        "required": ["passed", "feedback", "criteria_results"],
        "additionalProperties": False,
    }


def same_verdict(
    criteria: Iterable[str],
    *,
    passed: bool,
    feedback: str = "",
    usage: Usage | None = None,
    findings: Iterable[Finding] = (),
) -> Passed | NeedsWork:
    """Answer every criterion alike, for a reviewer that judges them as one.

    Args:
        criteria: The names of all criteria: `request.criteria`.
        passed: The answer.
        feedback: What has to change, if anything has to.
        usage: What it has cost.
        findings: Where in the files the reviewer has found something.
    """
    results = tuple(CriterionResult(criterion=name, passed=passed) for name in criteria)
    verdict_type = Passed if passed else NeedsWork
    return verdict_type(feedback, results, usage, tuple(findings))


def read_verdict(answer: Any, usage: Usage | None = None) -> Passed | NeedsWork:
    """Read what a reviewer answered as JSON: `passed`, `feedback`, `criteria_results` and `findings`.

    Only the shape is checked here. The gate checks every verdict against the criteria, whichever runner it comes from.

    Raises:
        BadVerdict: The answer has another shape; the work was not judged.
    """
    if not isinstance(answer, Mapping):
        raise BadVerdict(f"the answer is not an object with `passed`, but {_type_name(answer)}")
    if "passed" not in answer:
        raise BadVerdict("the answer is not a verdict: it has no `passed`")
    passed, feedback = answer["passed"], answer.get("feedback")
    if not isinstance(passed, bool):
        raise BadVerdict(f"`passed` is {_type_name(passed)}, not true or false")
    if not isinstance(feedback, str | None):
        raise BadVerdict(f"`feedback` is {_type_name(feedback)}, not text")
    results = tuple(_results(answer.get("criteria_results")))
    verdict_type = Passed if passed else NeedsWork
    findings = tuple(read_findings(answer.get("findings")))
    return verdict_type(feedback=feedback or "", criteria=results, usage=usage, findings=findings)


def checked(verdict: object, criteria: Iterable[str]) -> Verdict:
    """Return the verdict as it may be believed: it passed only if every criterion was answered, and each passed.

    Raises:
        BadVerdict: It is not a verdict, or does not judge exactly the criteria of the review.
    """
    if isinstance(verdict, HandedBack) and isinstance(verdict.feedback, str):
        return verdict
    if isinstance(verdict, Waiting) and isinstance(verdict.reference, str) and isinstance(verdict.text, str):
        return Waiting(one_line(decoded(verdict.reference)), _bounded(verdict.text))
    if not isinstance(verdict, Passed | NeedsWork) or not isinstance(verdict.feedback, str):
        raise BadVerdict(f"the runner gave {_type_name(verdict)}, not a verdict")
    judged: list[str] = []
    for result in verdict.criteria:
        if not isinstance(result, CriterionResult):
            raise BadVerdict("the runner gave criteria of another type than CriterionResult")
        judged.append(result.criterion)
    _compare(judged, list(criteria))
    return _bounded_verdict(verdict)


def _bounded_verdict(verdict: Passed | NeedsWork) -> Passed | NeedsWork:
    failed = [result for result in verdict.criteria if not result.passed]
    results = tuple(
        result.model_copy(update={"feedback": result.feedback and _bounded(result.feedback)})
        for result in verdict.criteria
    )
    feedback = _bounded(verdict.feedback.strip())
    if isinstance(verdict, Passed) and not failed:
        return Passed(feedback, results, _bounded_usage(verdict.usage), verdict.findings)
    if isinstance(verdict, Passed) or not feedback:
        # The reviewer's own summary says "passed" although a criterion failed: use the failed criteria instead.
        sentences = [f"{result.criterion}: {result.feedback or NO_FEEDBACK}" for result in failed]
        feedback = _bounded("\n".join(sentences) or NO_FEEDBACK)
    exit_code = verdict.exit_code if isinstance(verdict, NeedsWork) else None
    return NeedsWork(feedback, results, _bounded_usage(verdict.usage), verdict.findings, exit_code)


def _bounded_usage(usage: object) -> Usage | None:
    """Return the costs as they can be stored: the runner may report anything."""
    if not isinstance(usage, Usage):
        return None
    cost = usage.cost_usd
    is_cost = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < MAX_COUNT
    return Usage(
        model=shorten(visible(decoded(usage.model)), MAX_MODEL) if isinstance(usage.model, str) else None,
        input_tokens=_count(usage.input_tokens),
        output_tokens=_count(usage.output_tokens),
        cost_usd=float(cost) if is_cost and cost is not None and math.isfinite(cost) else None,
    )


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT
    return value if is_count and isinstance(value, int) else None


def _compare(judged: list[str], criteria: list[str]) -> None:
    if sorted(judged) == sorted(criteria):
        return
    counts = Counter(judged)
    differences = {
        "missing": [name for name in criteria if name not in counts],
        "unknown": [name for name in counts if name not in criteria],
        "more than once": [name for name, count in counts.items() if count > 1],
    }
    problems = [
        f"{problem}: {', '.join(quoted(name, MAX_NAME) for name in names[:5])}"
        for problem, names in differences.items()
        if names
    ]
    if problems:
        raise BadVerdict(f"the verdict's criteria are not those of the review; {'; '.join(problems)}")


def _results(items: Any) -> Iterable[CriterionResult]:
    if items is None:
        return
    if not isinstance(items, list):
        raise BadVerdict(f"`criteria_results` is {_type_name(items)}, not a list")
    for item in items:
        fits = isinstance(item, Mapping) and isinstance(item.get("criterion"), str)
        if not fits or not isinstance(item.get("passed"), bool) or not isinstance(item.get("feedback"), str | None):
            raise BadVerdict("an entry of `criteria_results` is not {criterion: text, passed: true or false, feedback}")
        yield CriterionResult(criterion=item["criterion"], passed=item["passed"], feedback=item.get("feedback"))


def _bounded(text: str) -> str:
    """Cut a text, and write invisible characters as escapes."""
    cut = text[:MAX_FEEDBACK]
    shown = visible_lines(decoded(cut))
    return shown if len(cut) == len(text) else f"{shown}… [{len(text):,} characters, cut here]"


def _type_name(value: object) -> str:
    return "null" if value is None else type(value).__name__
