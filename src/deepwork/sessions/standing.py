"""How a step has passed its gate, told by the history. Pure."""

from __future__ import annotations

from enum import StrEnum
from itertools import dropwhile, takewhile

from deepwork.models.sessions import EventKind, HistoryEntry, Session
from deepwork.sessions.transitions import PERSON


class Standing(StrEnum):
    """Why a step is completed."""

    JUDGED = "judged"
    SELF_JUDGED = "self-judged"
    OVERRIDDEN = "overridden by the agent"
    PERMITTED = "overridden by a person, as far as this machine can tell"
    SKIPPED = "skipped: there was nothing to judge"
    UNREPORTED = "never reported"
    GATE_OFF = "not judged: the quality gate was off"
    NOT_JUDGED = "not judged"
    WITHOUT_REVIEWS = "without reviews"
    OPEN = "open"


def standing(session: Session, step_id: str) -> Standing:
    """Say how a step was completed the last time."""
    report, progress = last_report(session, step_id), session.step_progress.get(step_id)
    if not report or progress is None or not progress.completed_at:  # a step that was reopened is open, too
        return Standing.OPEN
    if report[0].detail.get("reported") is False:
        return Standing.UNREPORTED
    return _of_report(report[1:]) if session.pinned.steps[step_id].reviews else Standing.WITHOUT_REVIEWS


def last_report(session: Session, step_id: str) -> list[HistoryEntry]:
    """Give the last completion of a step and what led to it, the newest first; nothing if it is not completed."""
    entries = [entry for entry in reversed(session.history) if entry.step_id == step_id]
    report = [*dropwhile(_is_no_completion, entries)]
    return [*report[:1], *takewhile(_is_no_completion, report[1:])]


def _is_no_completion(entry: HistoryEntry) -> bool:
    return entry.kind != EventKind.STEP_COMPLETED


def _of_report(entries: list[HistoryEntry]) -> Standing:
    """Say what led to a completion: the newest entry that can have. A person's leave counts whatever came after it."""
    if any(entry.kind == EventKind.OVERRIDE and entry.detail.get("by") == PERSON for entry in entries):
        return Standing.PERMITTED
    for entry in entries:
        match entry.kind:
            case EventKind.OVERRIDE:
                return Standing.OVERRIDDEN
            case EventKind.SELF_REVIEW:
                return Standing.SELF_JUDGED
            case EventKind.GATE_OFF:
                return Standing.GATE_OFF
            case EventKind.VERDICT:
                return Standing.JUDGED if entry.detail.get("passed") is True else Standing.NOT_JUDGED
            case EventKind.STEP_BEGUN:
                break
    skipped = any(entry.kind == EventKind.REVIEW_SKIPPED for entry in entries)
    return Standing.SKIPPED if skipped else Standing.NOT_JUDGED
