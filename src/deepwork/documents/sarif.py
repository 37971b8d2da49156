"""SARIF 2.1.0, in which editors and forges read findings: one writer for everything that has some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

# The one level that SARIF calls otherwise.
_LEVELS = {"info": "note"}


@dataclass(frozen=True)
class SarifResult:
    """One finding.

    Attributes:
        level: `error`, `warning`, `note`, or `info`, which is written as `note`.
        file: None where it is about none.
        line: Counts from 1; None for the file as a whole.
        end_line: The last line, if it is another.
        suppressed: Why no action is needed, if so; "" without a reason.
        kind: `fail`; `pass` for something that is as it should be, and `open` for work without a verdict: both have no
            level.
        in_source: Whether the suppression is written in the file itself.
    """

    rule: str
    level: Literal["error", "warning", "note", "info"]
    message: str
    file: Path | None = None
    line: int | None = None
    suppressed: str | None = None
    end_line: int | None = None
    kind: Literal["fail", "pass", "open"] = "fail"
    in_source: bool = True


def sarif_log(
    results: Iterable[SarifResult],
    rules: Mapping[str, Mapping[str, str]],
    *,
    root: Path,
    version: str,
    failures: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the log of one run.

    Args:
        results: The findings.
        rules: What each rule says and what cures it: its `says`, `cure` and `level`, by its name.
        root: The project; files in it are named relative to it.
        version: That of DeepWork.
        failures: What could not be done, each in a sentence: then the run was not successful.
    """
    names = [*rules]
    driver = {"name": "deepwork", "version": version, "rules": [_rule(name, rule) for name, rule in rules.items()]}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "originalUriBaseIds": {"PROJECTROOT": {"uri": f"{root.absolute().as_uri().rstrip('/')}/"}},
                "invocations": [_invocation(failures)],
                "results": [_result(result, names, root) for result in results],
            }
        ],
    }


def _rule(name: str, rule: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": {"text": rule["says"]},
        "help": {"text": rule["cure"]},
        "defaultConfiguration": {"level": _LEVELS.get(rule["level"], rule["level"])},
    }


def _invocation(failures: Sequence[str]) -> dict[str, Any]:
    if not failures:
        return {"executionSuccessful": True}
    notices = [{"level": "error", "message": {"text": failure}} for failure in failures]
    return {"executionSuccessful": False, "toolExecutionNotifications": notices}


def _result(result: SarifResult, names: list[str], root: Path) -> dict[str, Any]:
    is_failure = result.kind == "fail"
    written: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": names.index(result.rule),
        **({} if is_failure else {"kind": result.kind}),
        "level": _LEVELS.get(result.level, result.level) if is_failure else "none",
        "message": {"text": result.message},
    }
    if result.file:
        place: dict[str, Any] = {"artifactLocation": _location(result.file, root)}
        if result.line:
            end = {"endLine": result.end_line} if result.end_line else {}
            place["region"] = {"startLine": result.line, **end}
        written["locations"] = [{"physicalLocation": place}]
    if result.suppressed is not None:
        justification = {"justification": result.suppressed} if result.suppressed else {}
        written["suppressions"] = [{"kind": "inSource" if result.in_source else "external", **justification}]
    return written


def _location(file: Path, root: Path) -> dict[str, str]:
    absolute, base = file.absolute(), root.absolute()
    if absolute.is_relative_to(base):
        return {
            "uri": quote(str(absolute.relative_to(base)).encode("utf-8", "surrogateescape")),
            "uriBaseId": "PROJECTROOT",
        }
    return {"uri": absolute.as_uri()}
