"""Where a session stands: the one reading of its history. Pure.

Everybody else shows what is derived here: which steps are open, how each has passed its gate, and which wait for a
person.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import dropwhile, islice, takewhile

from deepwork.models.history import (
    Attempt,
    Conclusion,
    Detail,
    EventKind,
    GateOff,
    HandedBack,
    HistoryEntry,
    NoVerdict,
    Override,
    OverrideAsked,
    Paused,
    PersonAsked,
    Reopened,
    SelfReview,
    StepBegun,
    StepCompleted,
    Unknown,
    Unpaused,
    Verdict,
    Waiting,
)
from deepwork.models.sessions import Session, StepProgress
from deepwork.models.standing import (
    MAX_NAME,
    MAX_TEXT,
    MAX_WAITS,
    Head,
    Passage,
    Pause,
    Standing,
    Wait,
    WaitingStep,
    WaitKind,
)
from deepwork.text import one_line

# Who has said yes to an override over HTTP, where no person is seen.
CLIENT = "client"

# What a standing may take of the head of a document, as it is written there.
MAX_STANDING = 2048

# Of sessions of earlier releases, whose attempts do not say under which limits they were judged.
_DEFAULT_LIMIT = 3
# The class of errors that only the user can do something about.
_UNAVAILABLE = ("RunnerUnavailable", "GateCannotFail")
_ANSWERS_NOTHING = (EventKind.NOTE, EventKind.COMMENT_ANSWERED, EventKind.COMMENT_RESOLVED)


class StepState(StrEnum):
    """Where a step is in its session.

    Of the open steps of a group, its primary, which ends the group, is the current one.
    """

    DONE = "done"
    CURRENT = "current"
    OPEN = "open"
    WAITING = "waiting"
    SKIPPED = "skipped"


def standing_of(session: Session, revision: int | None = None) -> Standing:
    """Return where a session stands; its revision is its own unless the one is given that it is going to have.

    Its texts are cut until it fits, and steps that wait are left out only after that.
    """
    updated_at = one_line(session.updated_at or session.started_at, MAX_NAME)
    last_call_at, pauses = _last_call(session)
    standing = Standing(
        revision=session.revision if revision is None else revision,
        position=session.position,
        state=f"{one_line(session.current_step_id, MAX_NAME)} {updated_at}",
        last_call_at=one_line(last_call_at, MAX_NAME),
        pause=_pause(pauses[-1]) if pauses and session.is_active else None,
        paused=_paused_text(session),
        gone_at=one_line(gone_at(session), MAX_NAME),
        review=one_line(review_words(session, session.current_step_id), MAX_NAME) if session.is_active else "",
    )
    waiting = [*islice(waiting_steps(session), MAX_WAITS)]
    if not waiting:
        return standing
    for length in (MAX_TEXT, MAX_TEXT // 2, MAX_TEXT // 4, 0):
        standing = replace(standing, waits=tuple(_wait(step, length) for step in waiting))
        if _size(standing) <= MAX_STANDING:
            return standing
    while _size(standing) > MAX_STANDING:
        standing = replace(standing, waits=standing.waits[:-1])
    return standing


def head_of(session: Session) -> Head:
    """Return what a listing shows of a session, computed from all of it."""
    return Head(**session.summary().model_dump(mode="json"), standing=standing_of(session))


def _wait(step: WaitingStep, length: int) -> Wait:
    text = one_line(step.text, length) if length else ""
    return Wait(one_line(step.step_id, MAX_NAME), step.kind.value, one_line(step.since, MAX_NAME), text)


def _size(standing: Standing) -> int:
    """Return how many bytes a standing has in a file of the store `json`, which indents it by two."""
    text = json.dumps(asdict(standing), ensure_ascii=False, indent=2)
    return len(text.encode(errors="replace")) + 2 * text.count("\n")


def calls_of(session: Session) -> int:
    """Return how often agents have changed a session; what people and runners have added does not count."""
    return sum(not _is_no_call(entry) for entry in session.history)


def waits_of(session: Session) -> list[Waiting]:
    """Return the waits since an agent has last changed a session, the oldest first."""
    return _last_call(session)[1]


def _last_call(session: Session) -> tuple[str, list[Waiting]]:
    """Return when an agent has last changed a session, and the waits since; a person who answers works on none."""
    waits: list[Waiting] = []
    for entry in reversed(session.history):
        if not _is_no_call(entry):
            return entry.at, waits[::-1]
        if isinstance(entry.detail, Waiting):
            waits.append(entry.detail)
    return session.started_at, waits[::-1]


def gone_at(session: Session) -> str:
    """Return when the client of an agent has ended, if no agent has changed the session since; else nothing."""
    later = takewhile(_is_no_call, reversed(session.history))
    return next((entry.at for entry in later if entry.kind == EventKind.AGENT_GONE), "")


def _is_no_call(entry: HistoryEntry) -> bool:
    if entry.kind == EventKind.OVERRIDE:
        return _is_of_person(entry.detail)
    if entry.kind == EventKind.VERDICT:
        return isinstance(entry.detail, Verdict) and entry.detail.by is not None
    return entry.kind in (
        EventKind.REOPENED,
        EventKind.NOTE,
        EventKind.COMMENT_RESOLVED,
        EventKind.WAITING,
        EventKind.PAUSED,
        EventKind.UNPAUSED,
        EventKind.AGENT_GONE,
    )


def _pause(wait: Waiting) -> Pause:
    agent = f" of {wait.agent}" if wait.agent else ""
    return Pause(one_line(wait.until, MAX_NAME), one_line(f"{wait.cause}{agent}", MAX_NAME))


def paused(session: Session) -> Paused | None:
    """Return the pause that a person has made and not ended; going back to a step does not end it."""
    for entry in reversed(session.history):
        if entry.kind in (EventKind.PAUSED, EventKind.UNPAUSED) and isinstance(entry.detail, Paused | Unpaused):
            return entry.detail if isinstance(entry.detail, Paused) else None
    return None


def _paused_text(session: Session) -> str:
    pause = paused(session) if session.is_active else None
    return (one_line(pause.reason) or "-") if pause else ""


# Which steps are open


def is_open(session: Session, step_id: str) -> bool:
    """True if a step can be completed now."""
    return step_id in session.open_entry and not session.step_progress[step_id].completed_at


def open_steps(session: Session) -> list[str]:
    """Return the steps that can be reported now; the last one ends the entry."""
    entry = session.open_entry
    return [step_id for step_id in (*entry[1:], *entry[:1]) if not session.step_progress[step_id].completed_at]


def step_state(session: Session, step_id: str) -> StepState:
    """Return where a step is."""
    progress = session.step_progress.get(step_id)
    if progress and progress.completed_at:
        return StepState.DONE
    if not session.is_active:
        return StepState.SKIPPED
    if step_id == session.current_step_id:
        return StepState.CURRENT
    return StepState.OPEN if step_id in open_steps(session) else StepState.WAITING


def last_completed(session: Session) -> StepProgress | None:
    """Return the step that was reported last, by the order of the history; members completed with it do not count."""
    for entry in reversed(session.history):
        progress = session.step_progress.get(entry.step_id or "")
        if entry.kind == EventKind.STEP_COMPLETED and progress and progress.reply:
            return progress
    return None


# What has happened to the steps as they are open now


def recent_entries(session: Session) -> list[HistoryEntry]:
    """Return the entries since the current steps were begun or reopened: earlier reviews no longer count."""
    entries: list[HistoryEntry] = []
    for entry in reversed(session.history):
        if entry.kind == EventKind.REOPENED:
            break
        entries.append(entry)
        if entry.kind == EventKind.STEP_BEGUN and entry.step_id == session.current_step_id:
            break  # the first that is recorded of its entry
    return entries[::-1]


def handed_back(session: Session, step_id: str) -> str | None:
    """Return what the agent was told when it had to have this step reviewed."""
    details = [entry.detail for entry in recent_entries(session) if entry.step_id == step_id]
    return next((detail.feedback for detail in reversed(details) if isinstance(detail, HandedBack)), None)


def permitted_override(session: Session, step_id: str) -> str | None:
    """Return the reason of a person's override that no report of the step has used yet."""
    for entry in reversed(recent_entries(session)):
        if entry.step_id != step_id:
            continue
        if isinstance(entry.detail, StepCompleted | StepBegun):
            return None
        if _is_of_person(entry.detail):
            return str(getattr(entry.detail, "reason", None))
    return None


def _is_of_person(detail: Detail | Unknown) -> bool:
    return isinstance(detail, Override) and detail.is_of_person


def last_review(session: Session, step_id: str) -> Detail | None:
    """Return what came last of the reviews of a step; None if it was reported without having asked for one."""
    for entry in reversed(recent_entries(session)):
        if entry.step_id == step_id and isinstance(entry.detail, HandedBack | Attempt | Verdict | NoVerdict):
            return entry.detail
    return None


def review_words(session: Session, step_id: str) -> str:
    """Return in words how the last review of a step has ended; nothing before the first, or while one runs."""
    conclusions: list[Conclusion] = []
    for entry in recent_entries(session):
        if entry.step_id == step_id:
            if isinstance(entry.detail, Attempt | StepBegun | HandedBack | PersonAsked):
                conclusions = []
            elif isinstance(entry.detail, Conclusion):
                conclusions.append(entry.detail)
    verdicts = [conclusion for conclusion in conclusions if isinstance(conclusion, Verdict)]
    if any(verdict.changed or not verdict.passed for verdict in verdicts):
        return "needs work"
    missing = [conclusion for conclusion in conclusions if isinstance(conclusion, NoVerdict)]
    if missing:
        ends = [conclusion.until for conclusion in missing if conclusion.until]
        return f"not judged: limited until {_moment(max(ends))}" if ends else "not judged"
    return "passed" if verdicts else ""


def _moment(until: str) -> str:
    """Return a stored time as people read it; any other text as it is."""
    try:
        return f"{datetime.fromisoformat(until).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return one_line(until, MAX_NAME)


def is_asked(session: Session, step_id: str, question: OverrideAsked) -> bool:
    """True if the last that happened to a step is that its agent asked for an override in the same way."""
    last = next((entry.detail for entry in reversed(session.history) if entry.step_id == step_id), None)
    return last == question


# How a step has passed its gate


def passage(session: Session, step_id: str) -> Passage:
    """Return how a step was completed the last time."""
    report, progress = last_report(session, step_id), session.step_progress.get(step_id)
    if not report or progress is None or not progress.completed_at:  # a step that was reopened is open, too
        return Passage.OPEN
    if is_unreported(session, step_id):
        return Passage.UNREPORTED
    details = [entry.detail for entry in report[1:]]
    return _of_report(details) if session.pinned.steps[step_id].reviews else Passage.WITHOUT_REVIEWS


def last_report(session: Session, step_id: str) -> list[HistoryEntry]:
    """Return the last completion of a step and what led to it, the newest first; nothing if it is not completed."""
    entries = [entry for entry in reversed(session.history) if entry.step_id == step_id]
    report = [*dropwhile(_is_no_completion, entries)]
    return [*report[:1], *takewhile(_is_no_completion, report[1:])]


def is_unreported(session: Session, step_id: str) -> bool:
    """True if a step was completed with its group, and never reported."""
    completion = next((entry.detail for entry in last_report(session, step_id)), None)
    return isinstance(completion, StepCompleted) and not completion.reported


def numbered(session: Session, step_id: str) -> Iterator[tuple[int, HistoryEntry]]:
    """Yield the entries of a step, each with the number of the attempt that it is about; 0 before the first one."""
    number, last = 0, None
    for entry in session.history:
        detail = entry.detail
        if isinstance(detail, Reopened):  # what follows is new work, whichever step was begun again
            last = None
        if entry.step_id != step_id:
            continue
        if isinstance(detail, Attempt):
            number += last is None or detail.work is None or detail.work != last.work
            last = detail
        yield number, entry


def agent_of(session: Session, step_id: str) -> str | None:
    """Return the agent of a run that has reported a step last; None if none was named."""
    completion = next((entry.detail for entry in last_report(session, step_id)), None)
    return completion.agent if isinstance(completion, StepCompleted) else None


def reason_of_passage(session: Session, step_id: str) -> Override | SelfReview | None:
    """Return the override or the self-review that let the last report of a step pass."""
    for entry in reversed(session.history):
        if entry.step_id == step_id and isinstance(entry.detail, Override | SelfReview):
            return entry.detail
    return None


def _is_no_completion(entry: HistoryEntry) -> bool:
    return entry.kind != EventKind.STEP_COMPLETED


def _of_report(details: Sequence[Detail | Unknown]) -> Passage:
    """Return what led to a completion: the newest possible entry. A person's leave counts even if others follow."""
    if any(map(_is_of_person, details)):
        return Passage.PERMITTED
    skipped = any(detail.kind == EventKind.REVIEW_SKIPPED for detail in details if isinstance(detail, Detail))
    for detail in details:
        match detail:
            case Override():
                return Passage.OVERRIDDEN
            case SelfReview():
                return Passage.SELF_JUDGED
            case GateOff():
                return Passage.GATE_OFF
            case Verdict():
                return Passage.JUDGED if detail.passed else Passage.NOT_JUDGED
            case StepBegun():
                break
    return Passage.SKIPPED if skipped else Passage.NOT_JUDGED


# Which steps wait for a person


def waiting_steps(session: Session) -> Iterator[WaitingStep]:
    """Yield the open steps whose agent was told to ask its user, and got no answer yet."""
    recent = recent_entries(session)
    for step_id in open_steps(session):
        if step := _waiting(session.step_progress[step_id], recent):
            yield step


def _waiting(progress: StepProgress, recent: list[HistoryEntry]) -> WaitingStep | None:
    """Return how a step waits after recent entries; None if its agent can go on, or a person has let it pass."""
    limits, outcome = Attempt(), list[HistoryEntry]()  # what came of the last report: nothing while it is reviewed
    question, is_permitted = None, False
    person: HistoryEntry | None = None  # who was asked, and has not decided
    for entry in recent:
        if entry.step_id != progress.step_id or entry.kind in _ANSWERS_NOTHING:
            continue
        question = entry if entry.kind == EventKind.OVERRIDE_ASKED else None
        if entry.kind in (EventKind.ATTEMPT, EventKind.STEP_BEGUN, EventKind.REVIEW_HANDED_BACK):
            outcome = []
        elif not question:  # a request that was made while a review ran is settled by what the review came to
            outcome.append(entry)
        if isinstance(entry.detail, Attempt):
            limits, person = entry.detail, None
        elif isinstance(entry.detail, PersonAsked):
            person = entry
        elif isinstance(entry.detail, Verdict) and entry.detail.by is not None:
            outcome, person = [], None  # the agent goes on with what the person has decided
        elif isinstance(entry.detail, StepBegun | StepCompleted):
            is_permitted = False
        elif _is_of_person(entry.detail):
            is_permitted = True
    if is_permitted:
        return None
    if person:
        text = _text(question.detail) if question else ""  # what the agent was told says nothing to a person
        return WaitingStep(progress.step_id, WaitKind.PERSON, person.at, text, _files(limits, [person]))
    if question:
        outcome = [question]
    kind = _wait_kind(progress, limits, [entry.detail for entry in outcome]) if outcome else None
    if kind is None:
        return None
    text = "\n".join(filter(None, (_text(entry.detail) for entry in outcome)))
    return WaitingStep(progress.step_id, kind, outcome[-1].at, text, _files(limits, outcome))


def _files(attempt: Attempt, entries: Sequence[HistoryEntry]) -> tuple[str, ...]:
    """Return the first files that were reported last; attempts of earlier releases do not name them."""
    question = next((entry.detail for entry in entries if isinstance(entry.detail, OverrideAsked)), None)
    return tuple((question or attempt).files or ())


def _wait_kind(progress: StepProgress, limits: Attempt, details: Sequence[Detail | Unknown]) -> WaitKind | None:
    """Return why a step waits after these events; None if the agent can go on."""
    if isinstance(details[0], OverrideAsked):
        return WaitKind.OVERRIDE
    conclusions = [detail for detail in details if isinstance(detail, Conclusion)]
    is_told_to_ask = any(conclusion.asks_user for conclusion in conclusions)
    verdicts = [detail for detail in conclusions if isinstance(detail, Verdict)]
    if any(verdict.changed for verdict in verdicts):
        return None
    if not all(verdict.passed for verdict in verdicts):
        limit = limits.max_attempts or _DEFAULT_LIMIT
        return WaitKind.FAILED_GATE if is_told_to_ask or progress.quality_attempts >= limit else None
    errors = [detail.error_kind for detail in conclusions if isinstance(detail, NoVerdict)]
    if errors and all(error in _UNAVAILABLE for error in errors):
        return WaitKind.RUNNER
    limit = limits.max_failures or _DEFAULT_LIMIT
    return WaitKind.NO_VERDICT if errors and (is_told_to_ask or progress.runner_failures >= limit) else None


def _text(detail: Detail | Unknown) -> str:
    match detail:
        case NoVerdict():
            return detail.error
        case OverrideAsked() if detail.by == CLIENT:
            return f"{detail.reason}\nThe client {detail.client} has answered yes; over HTTP that shows no person."
        case OverrideAsked():
            return detail.reason or ""
        case Verdict(passed=False):
            return detail.feedback
    return ""
