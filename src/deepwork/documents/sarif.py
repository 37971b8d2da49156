"""SARIF 2.1.0, in which editors and forges read findings: one writer for everything that has some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        line: Counts from 1; None for the file as a whole.
        suppressed: Why no action is needed, if so; "" without a reason.
    """

    rule: str
    level: Literal["error", "warning", "note", "info"]
    message: str
    file: Path
    line: int | None = None
    suppressed: str | None = None


def sarif_log(
    results: Iterable[SarifResult], rules: Mapping[str, Mapping[str, str]], *, root: Path, version: str
) -> dict[str, Any]:
    """Return the log of one run.

    Args:
        results: The findings.
        rules: What each rule says and what cures it: its `says`, `cure` and `level`, by its name.
        root: The project; files in it are named relative to it.
        version: That of DeepWork.
    """
    names = [*rules]
    driver = {
        "name": "deepwork",
        "version": version,
        "rules": [
            {
                "id": name,
                "shortDescription": {"text": rule["says"]},
                "help": {"text": rule["cure"]},
                "defaultConfiguration": {"level": _LEVELS.get(rule["level"], rule["level"])},
            }
            for name, rule in rules.items()
        ],
    }
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "originalUriBaseIds": {"PROJECTROOT": {"uri": f"{root.absolute().as_uri().rstrip('/')}/"}},
                "invocations": [{"executionSuccessful": True}],
                "results": [_result(result, names, root) for result in results],
            }
        ],
    }


def _result(result: SarifResult, names: list[str], root: Path) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _location(result.file, root)}
    if result.line:
        place["region"] = {"startLine": result.line}
    written: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": names.index(result.rule),
        "level": _LEVELS.get(result.level, result.level),
        "message": {"text": result.message},
        "locations": [{"physicalLocation": place}],
    }
    if result.suppressed is not None:
        justification = {"justification": result.suppressed} if result.suppressed else {}
        written["suppressions"] = [{"kind": "inSource", **justification}]
    return written


def _location(file: Path, root: Path) -> dict[str, str]:
    absolute, base = file.absolute(), root.absolute()
    if absolute.is_relative_to(base):
        return {
            "uri": quote(str(absolute.relative_to(base)).encode("utf-8", "surrogateescape")),
            "uriBaseId": "PROJECTROOT",
        }
    return {"uri": absolute.as_uri()}
