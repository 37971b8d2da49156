"""What counts as red: a refusal that can only be about the work. `docs/reference/quality-gate.md` shows the table."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePath
from typing import NamedTuple

from deepwork.models.reviews import NeedsWork

# A shell answers 128 and more when what it ran was killed by a signal.
_SIGNALLED = 128
_NOT_RUN = (126, 127)


class Rule(NamedTuple):
    """A refusal that is not red.

    Attributes:
        why: Why it says nothing about the work.
        pattern: What the program prints then.
        example: A line that it matches.
    """

    why: str
    pattern: re.Pattern[str]
    example: str


def _rule(why: str, pattern: str, example: str) -> Rule:
    return Rule(why, re.compile(pattern, re.IGNORECASE | re.MULTILINE), example)


RULES = (
    _rule("it found no tests", r"^(?:=+ )?no tests ran\b", "===== no tests ran in 0.01s ====="),
    _rule("it found no tests", r"\bcollected 0 items\s*$", "collected 0 items"),
    _rule("it found no tests", r"^Ran 0 tests\b", "Ran 0 tests in 0.000s"),
    _rule("it found no tests", r"^\W*tests 0\s*$", "# tests 0"),
    _rule("it found no tests", r"\bNo tests? (?:files? )?(?:were )?found\b", "No tests found, exiting with code 1"),
    _rule("it found no tests", r"\bmissing script: \"?test\b", 'npm error Missing script: "test"'),
    _rule("it crashed", r"^(?:.*: )?Segmentation fault\b", "Segmentation fault (core dumped)"),
    _rule("it crashed", r"^MemoryError\b|\bout of memory\b", "MemoryError"),
    _rule("it could not run", r"^(?:\S+: )*(?:line )?(?:\d+: )?\S+: (?:command )?not found\s*$", "sh: jq: not found"),
    _rule("the network was away", r"\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT)\b", "connect ECONNREFUSED ::1:80"),
    _rule("the network was away", r"Temporary failure in name resolution", "Temporary failure in name resolution"),
    _rule("the network was away", r"Could not resolve host", "curl: (6) Could not resolve host: example.com"),
    _rule("the port was taken", r"\bEADDRINUSE\b|Address already in use", "OSError: [Errno 98] Address already in use"),
    _rule("the disk was full", r"No space left on device", "OSError: [Errno 28] No space left on device"),
)  # fmt: skip
# Programs name a file that they miss in many ways; each has the name before or after these words.
_MISSING = re.compile(
    r"^.*(?:No such file or directory|ENOENT|FileNotFoundError|can(?:not|'t) open|file not found|does not exist)"
    r".*\n?.*$",
    re.IGNORECASE | re.MULTILINE,
)
_NAMED = re.compile(r"/|\w\.\w")


def doubt(verdict: NeedsWork, broken: Collection[str]) -> str | None:
    """Return why a refusal may be about something else than the work; None if it is red.

    Args:
        verdict: The refusal.
        broken: The paths of the files that are broken: that they are missing is what the gate has to see.
    """
    if verdict.exit_code is not None and verdict.exit_code in _NOT_RUN:
        return "it could not run"
    if verdict.exit_code is not None and verdict.exit_code > _SIGNALLED:
        return "it crashed"
    for rule in RULES:
        if rule.pattern.search(verdict.feedback):
            return rule.why
    names = {PurePath(path).name for path in broken}
    lines = [*map(_where, _MISSING.findall(verdict.feedback))]
    if lines and not any(name in line for line in lines for name in names) and verdict.exit_code is not None:
        return "it missed another file"
    return None


def _where(lines: str) -> str:
    """Return the part that names what is missing: the line that says so, or the next if that names no file."""
    line = lines.partition("\n")[0]
    return line if _NAMED.search(line) else lines
