"""The words of the specification: as callers pass them, and as they are stored and shown."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

Profile = Literal["simple", "standard", "complex"]
WorkflowEnd = Literal["completed", "failed", "partial"]
PhaseEnd = Literal["completed", "failed"]
TaskEnd = Literal["success", "partial_success", "failed"]
CallerType = Literal["orchestrator", "subagent"]
Category = Literal["architecture", "library_choice", "trade_off", "workaround", "other"]
IssueType = Literal["documentation_gap", "bug_encountered", "dependency_conflict", "unclear_requirement", "other"]
TestsStatus = Literal["passed", "failed", "not_run"]
Section = Literal["phase_summary", "tasks", "decisions", "milestones", "blockers"]

IN_PROGRESS = "IN_PROGRESS"
COMPLETED = "COMPLETED"
FAILED = "FAILED"
SUCCESS = "SUCCESS"
PARTIAL_SUCCESS = "PARTIAL_SUCCESS"

TOTAL_PHASES = {"simple": 2, "standard": 3, "complex": 4}
# All other words are stored as themselves in upper case.
_STORED = {"documentation_gap": "DOC_GAP", "bug_encountered": "BUG", "partial": FAILED}


def stored(word: str) -> str:
    """Return the stored word for a caller's word."""
    return _STORED.get(word, word.upper())


def iso(milliseconds: int) -> str:
    """Write a time as the tools show it: ISO 8601, UTC, with milliseconds and `Z`."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_or_none(milliseconds: int | None) -> str | None:
    """Write a time that may be missing."""
    return None if milliseconds is None else iso(milliseconds)
