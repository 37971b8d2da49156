"""Which open steps of a session wait for a person, told by the history. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from deepwork.models.sessions import EventKind, HistoryEntry, Session
from deepwork.sessions.transitions import open_steps, permitted_override, since_reopened

# The class of `INFRASTRUCTURE` entries that only the user can do something about.
_UNAVAILABLE = "RunnerUnavailable"
_BEGINNINGS = (EventKind.ATTEMPT, EventKind.STEP_BEGUN, EventKind.REVIEW_HANDED_BACK)
_TEXTS = {EventKind.INFRASTRUCTURE: "error", EventKind.OVERRIDE_ASKED: "reason", EventKind.VERDICT: "feedback"}


class WaitKind(StrEnum):
    """Why only a person can say how a step goes on."""

    FAILED_GATE = "failed-gate"
    NO_VERDICT = "no-verdict"
    RUNNER = "runner"
    OVERRIDE = "override"


@dataclass(frozen=True)
class WaitingStep:
    """A step that waits, since when, and what was said of it last."""

    step_id: str
    kind: WaitKind
    since: str
    text: str


def waiting_steps(session: Session, *, max_attempts: int, max_failures: int) -> Iterator[WaitingStep]:
    """Give the steps of which the agent was told to ask its user, who has not answered yet."""
    for step_id in open_steps(session):
        if permitted_override(session, step_id) is None and (entries := _latest(session, step_id)):
            kind = _kind(session, step_id, entries, max_attempts, max_failures)
            if kind:
                text = "\n".join(filter(None, (_text(entry) for entry in entries)))
                yield WaitingStep(step_id, kind, entries[-1].at, text)


def _latest(session: Session, step_id: str) -> list[HistoryEntry]:
    """Give what came of the last report: of an attempt, or of a request for an override; nothing while it runs."""
    entries = [entry for entry in since_reopened(session) if entry.step_id == step_id]
    if entries and entries[-1].kind == EventKind.OVERRIDE_ASKED:
        return entries[-1:]
    # A request that was made while a review ran is settled by what the review came to.
    entries = [entry for entry in entries if entry.kind != EventKind.OVERRIDE_ASKED]
    for number in range(len(entries) - 1, -1, -1):
        if entries[number].kind in _BEGINNINGS:
            return entries[number + 1 :]
    return entries


def _kind(
    session: Session, step_id: str, entries: list[HistoryEntry], max_attempts: int, max_failures: int
) -> WaitKind | None:
    progress = session.step_progress[step_id]
    if entries[0].kind == EventKind.OVERRIDE_ASKED:
        return WaitKind.OVERRIDE
    verdicts = [entry for entry in entries if entry.kind == EventKind.VERDICT]
    if any(entry.detail.get("changed") for entry in verdicts):
        return None
    if any(not entry.detail.get("passed") for entry in verdicts):
        return WaitKind.FAILED_GATE if progress.quality_attempts >= max_attempts else None
    errors = [entry.detail.get("kind") for entry in entries if entry.kind == EventKind.INFRASTRUCTURE]
    if errors and all(error == _UNAVAILABLE for error in errors):
        return WaitKind.RUNNER
    return WaitKind.NO_VERDICT if errors and progress.runner_failures >= max_failures else None


def _text(entry: HistoryEntry) -> str:
    is_passed = entry.kind == EventKind.VERDICT and entry.detail.get("passed")
    name = next((name for kind, name in _TEXTS.items() if kind == entry.kind), None)
    return str(entry.detail.get(name) or "") if name and not is_passed else ""
