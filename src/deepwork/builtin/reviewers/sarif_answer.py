"""SARIF 2.1.0 as a verdict: a result of level error refuses the work, and results are findings at their lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from deepwork.api import NeedsWork, Passed, ReviewRequest, same_verdict
from deepwork.errors import BadVerdict, RunnerError
from deepwork.models.reviews import Finding, FindingLevel
from deepwork.text import one_line

MAX_NAMED = 20
MAX_MESSAGE = 500
_LEVELS: Mapping[str, FindingLevel] = {"error": "error", "warning": "warning", "note": "note"}
# A result that was suppressed by a decision.
_OPEN_SUPPRESSIONS = ("underReview", "rejected")


@dataclass(frozen=True)
class _Result:
    level: FindingLevel
    message: str
    rule: str
    file: str = ""
    line: int = 1
    end_line: int | None = None

    def finding(self, criteria: Mapping[str, str]) -> Finding:
        """Return it as a finding: the rule is its criterion if that is one, and so is the only criterion."""
        criterion = self.rule if self.rule in criteria else next(iter(criteria)) if len(criteria) == 1 else None
        text = f"{self.message} ({self.rule})" if self.rule else self.message
        return Finding(
            file=self.file, line=self.line, end_line=self.end_line, criterion=criterion, message=text, level=self.level
        )


def read_sarif(stdout: bytes, request: ReviewRequest) -> Passed | NeedsWork:
    """Make a verdict on all criteria of a SARIF log.

    Raises:
        BadVerdict: It is not SARIF 2.1.0.
        RunnerError: The tool says in it that it could not do its work.
    """
    results = [result for run in _runs(stdout) for result in _results(run)]
    findings = [result.finding(request.criteria) for result in results]
    errors = [finding for finding in findings if finding.level == "error"]
    located = [finding for result, finding in zip(results, findings, strict=True) if result.file]
    lines = [finding.shown if finding.file else finding.message for finding in errors[:MAX_NAMED]]
    if len(errors) > MAX_NAMED:
        lines.append(f"and {len(errors) - MAX_NAMED} more")
    return same_verdict(request.criteria, passed=not errors, feedback="\n".join(lines), findings=located)


def _runs(stdout: bytes) -> list[dict[str, Any]]:
    try:
        log = json.loads(stdout.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise BadVerdict(f"the program printed no SARIF: {one_line(_text(stdout), 200) or 'nothing'}") from None
    runs = _list(log, "runs")
    if not isinstance(log, dict) or log.get("version") != "2.1.0" or not runs:
        raise BadVerdict("the program printed JSON that is not a SARIF 2.1.0 log with a run")
    for run in runs:
        if not isinstance(run, dict) or not isinstance(run.get("results"), list):
            raise BadVerdict("a run of the SARIF log has no `results`, so nothing was checked")
        for invocation in _list(run, "invocations"):
            if isinstance(invocation, dict) and invocation.get("executionSuccessful") is False:
                raise RunnerError(f"the program could not do its work, its SARIF says: {_notices(invocation)}")
    return runs


def _results(run: dict[str, Any]) -> Iterator[_Result]:
    """Yield the results that need an action."""
    defaults = _default_levels(run)
    for item in run["results"]:
        if not isinstance(item, dict):
            raise BadVerdict("a result of the SARIF log is not an object")
        rule = item.get("ruleId") or _get(item, "rule", "id")
        rule = rule if isinstance(rule, str) else ""
        level = _LEVELS.get(item.get("level") or defaults.get(rule, "warning"))
        if level is None or item.get("kind", "fail") != "fail" or _is_suppressed(item):
            continue
        message = _get(item, "message", "text") or _get(item, "message", "markdown") or "no message"
        yield _Result(level, one_line(str(message), MAX_MESSAGE), rule, **_place(item, run))


def _default_levels(run: dict[str, Any]) -> dict[str, str]:
    rules = _get(run, "tool", "driver", "rules")
    return {
        rule["id"]: level
        for rule in (rules if isinstance(rules, list) else ())
        if isinstance(rule, dict) and isinstance(rule.get("id"), str)
        if isinstance(level := _get(rule, "defaultConfiguration", "level"), str)
    }


def _is_suppressed(item: dict[str, Any]) -> bool:
    suppressions = [suppression for suppression in _list(item, "suppressions") if isinstance(suppression, dict)]
    return bool(suppressions) and all(
        suppression.get("status") not in _OPEN_SUPPRESSIONS for suppression in suppressions
    )


def _place(item: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Return file and lines of a result; nothing if it names no file."""
    first = next(iter(_list(item, "locations")), None)
    location = _get(first, "physicalLocation", "artifactLocation")
    uri = _get(location, "uri")
    if not isinstance(uri, str):
        return {}
    base = _get(run, "originalUriBaseIds", str(_get(location, "uriBaseId")), "uri")
    path = unquote(urlsplit(urljoin(base, uri) if isinstance(base, str) else uri).path)
    region = _get(first, "physicalLocation", "region")
    line, end = _get(region, "startLine"), _get(region, "endLine")
    return {
        "file": path,
        "line": line if isinstance(line, int) else 1,
        "end_line": end if isinstance(end, int) and end != line else None,
    }


def _notices(invocation: dict[str, Any]) -> str:
    notices = [_get(notice, "message", "text") for notice in _list(invocation, "toolExecutionNotifications")]
    texts = [one_line(text, MAX_MESSAGE) for text in notices if isinstance(text, str)]
    return "; ".join(texts[:3]) or "executionSuccessful is false"


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _list(value: Any, key: str) -> list[Any]:
    items = _get(value, key)
    return items if isinstance(items, list) else []


def _text(content: bytes) -> str:
    return content[:4000].decode("utf-8", "backslashreplace").strip()
