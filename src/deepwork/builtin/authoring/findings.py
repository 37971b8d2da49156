"""Findings of the linter, and the comments that mark a finding as intended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deepwork.builtin.authoring.rules import FindingLevel, rules
from deepwork.documents.problems import Problem

IGNORE = re.compile(r"(?:#|<!--)\s*deepwork:\s*ignore\[([^\]\n]*)\]")


@dataclass(frozen=True)
class JobFinding:
    """One thing that is wrong with a job. `message` has no path, and is the same wherever it is read."""

    rule: str
    level: FindingLevel
    file: Path
    line: int | None
    message: str
    cure: str
    is_ignored: bool = False

    @classmethod
    def of(cls, problem: Problem, file: Path, *, level: FindingLevel | None = None) -> JobFinding:
        """Make the finding of a problem; its level is that of its rule unless another is given."""
        rule = rules()[problem.rule]
        return cls(problem.rule, level or rule.level, file, problem.line, problem.text, rule.cure)

    @property
    def as_json(self) -> dict[str, Any]:
        """The finding as `deepwork jobs check --json` prints it."""
        return {
            "rule": self.rule,
            "level": self.level,
            "file": str(self.file),
            "line": self.line,
            "message": self.message,
            "cure": self.cure,
        }

    @property
    def at(self) -> str:
        """`file:line: message`, which editors can jump to."""
        return Problem(self.message, self.line).at(self.file)


def with_ignored(findings: Iterable[JobFinding], texts: Mapping[Path, str]) -> Iterator[JobFinding]:
    """Mark the findings that a comment on their line, or alone on the line above, ignores; errors stay.

    Yields also a finding for each comment that ignores nothing.
    """
    comments = {file: _comments(text) for file, text in texts.items() if "deepwork:" in text}
    used: set[tuple[Path, int, str]] = set()
    for finding in findings:
        number = comments.get(finding.file, {}).get((finding.line or 1, finding.rule))
        if number is None or finding.level == "error":
            yield finding
            continue
        used.add((finding.file, number, finding.rule))
        yield replace(finding, is_ignored=True)
    for file, of_file in comments.items():
        for number, name in sorted({(number, name) for (_, name), number in of_file.items()}):
            if (file, number, name) in used:
                continue
            reason = "finds nothing here" if name in rules() else "is no rule"
            unknown = None if name in rules() else (name, [*rules()])
            yield JobFinding.of(Problem(f"ignore[{name}]: {name!r} {reason}", number, unknown, "unused-ignore"), file)


def _comments(text: str) -> dict[tuple[int, str], int]:
    """Return the line of each comment, by the line and the rule that it is about."""
    comments: dict[tuple[int, str], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for match in IGNORE.finditer(line):
            about = number if line[: match.start()].strip() else number + 1
            for name in match[1].split(","):
                comments[about, name.strip()] = number
    return comments
