"""Verdicts are checked, not trusted: what a reviewer answers, and what it must not get away with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from deepwork.errors import BadVerdict
from deepwork.models.reviews import CriterionResult, HandedBack, NeedsWork, Passed, Usage, Verdict

NO_FEEDBACK = "No feedback provided"
MAX_FEEDBACK = 32 * 1024
_KEYS = {"passed", "feedback", "criteria_results"}


def verdict_schema(criteria: Iterable[str]) -> dict[str, Any]:
    """Give the JSON Schema of an answer that judges every one of these criteria."""
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
        },
        "required": ["passed", "feedback", "criteria_results"],
        "additionalProperties": False,
    }


def read_verdict(answer: Any, criteria: Iterable[str], usage: Usage | None = None) -> Passed | NeedsWork:
    """Make a verdict of what a reviewer answered as JSON: `passed`, `feedback` and `criteria_results`.

    Raises:
        BadVerdict: It is empty or of another shape; the work was not judged.
    """
    if not isinstance(answer, Mapping):
        raise BadVerdict(f"the answer is no object with `passed`, but {_kind(answer)}")
    if not _KEYS & answer.keys():
        raise BadVerdict("the answer holds no verdict: neither `passed` nor `feedback` nor `criteria_results`")
    passed, feedback = answer.get("passed", False), answer.get("feedback")
    if not isinstance(passed, bool):
        raise BadVerdict(f"`passed` is {_kind(passed)}, not true or false")
    if not isinstance(feedback, str | None):
        raise BadVerdict(f"`feedback` is {_kind(feedback)}, not text")
    results = tuple(_results(answer.get("criteria_results")))
    made = Passed if passed else NeedsWork
    return _checked(made(feedback=feedback or "", criteria=results, usage=usage), list(criteria))


def checked(verdict: object, criteria: Iterable[str]) -> Verdict:
    """Give the verdict as it may be believed: it passed only if every criterion did.

    Raises:
        BadVerdict: It is none, or judges other criteria than those that were asked.
    """
    if isinstance(verdict, HandedBack) and isinstance(verdict.feedback, str):
        return verdict
    if not isinstance(verdict, Passed | NeedsWork) or not isinstance(verdict.feedback, str):
        raise BadVerdict(f"the runner gave {_kind(verdict)}, not a verdict")
    if not all(isinstance(result, CriterionResult) for result in verdict.criteria):
        raise BadVerdict("the runner gave criteria of another kind than CriterionResult")
    return _checked(verdict, list(criteria))


def _checked(verdict: Passed | NeedsWork, asked: list[str]) -> Passed | NeedsWork:
    listed = [result.criterion for result in verdict.criteria]
    if listed:
        _compare(listed, asked)
    failed = [result for result in verdict.criteria if not result.passed]
    results = tuple(
        result.model_copy(update={"feedback": result.feedback and _bounded(result.feedback)})
        for result in verdict.criteria
    )
    feedback = _bounded(verdict.feedback.strip())
    if isinstance(verdict, Passed) and not failed:
        return Passed(feedback, results, verdict.usage)
    if isinstance(verdict, Passed) or not feedback:
        told = [f"{result.criterion}: {result.feedback or NO_FEEDBACK}" for result in failed]
        # What was said of work that passed misleads about work that did not.
        feedback = _bounded("\n".join(told) or NO_FEEDBACK)
    return NeedsWork(feedback, results, verdict.usage)


def _compare(listed: list[str], asked: list[str]) -> None:
    counts = Counter(listed)
    wrong = {
        "missing": [name for name in asked if name not in counts],
        "unknown": [name for name in counts if name not in asked],
        "more than once": [name for name, count in counts.items() if count > 1],
    }
    found = [f"{what}: {', '.join(map(_short, names[:5]))}" for what, names in wrong.items() if names]
    if found:
        raise BadVerdict(f"the verdict's criteria are not those that were asked; {'; '.join(found)}")


def _results(listed: Any) -> Iterable[CriterionResult]:
    if listed is None:
        return
    if not isinstance(listed, list):
        raise BadVerdict(f"`criteria_results` is {_kind(listed)}, not a list")
    for one in listed:
        fits = isinstance(one, Mapping) and isinstance(one.get("criterion"), str)
        if not fits or not isinstance(one.get("passed"), bool) or not isinstance(one.get("feedback"), str | None):
            raise BadVerdict("an entry of `criteria_results` is not {criterion: text, passed: true or false, feedback}")
        yield CriterionResult(criterion=one["criterion"], passed=one["passed"], feedback=one.get("feedback"))


def _bounded(text: str) -> str:
    # A lone surrogate is no text: JSON has a way to write it, and stores have none to keep it.
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= MAX_FEEDBACK else f"{text[:MAX_FEEDBACK]}… [{len(text):,} characters, cut here]"


def _short(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:99]}…")


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
