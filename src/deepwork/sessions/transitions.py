"""From one state of a session to the next. Pure: no I/O, and the time comes in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deepwork.models.outputs import Outputs
from deepwork.models.sessions import (
    SCHEMA_VERSION,
    EventKind,
    GitPlace,
    HistoryEntry,
    PinnedDefinition,
    RecordedAbort,
    RecordedReply,
    Session,
    SessionStatus,
    SessionSummary,
    StepProgress,
    StepStatus,
)
from deepwork.sessions.definition import begun_step, entry_of

# Who has overridden a review, as far as this machine can tell; without this an agent has.
PERSON = "person"


@dataclass(frozen=True)
class Completion:
    """What completes a step.

    Attributes:
        reported: The outputs as the agent wrote them, if their paths were resolved to others.
        override: Why the step is not reviewed.
        gate_off: Whether it has reviews that nobody makes, because the quality gate is off.
        permission: Who has allowed that, if a person has.
        notices: What the agent should know about its outputs.
        digests: What tells the completed files from others.
        git: Branch and commit at this moment.
        next_instructions: The instructions of the steps that begin with it; none after a member of a group, and none
            at the end of the workflow.
    """

    step_id: str
    outputs: Outputs
    reported: Outputs | None = None
    notes: str | None = None
    override: str | None = None
    gate_off: bool = False
    permission: Mapping[str, Any] | None = None
    notices: tuple[str, ...] = ()
    next_instructions: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    git: GitPlace | None = None


def new_session(
    session_id: str,
    definition: PinnedDefinition,
    instructions: Mapping[str, str],
    *,
    job_name: str,
    goal: str,
    instance_id: str | None,
    principal: str,
    parents: list[str],
    git: GitPlace | None = None,
    strict: bool = False,
    now: str,
) -> Session:
    """Make a session whose first entry has begun."""
    workflow = definition.workflow.name
    session = Session(
        schema_version=SCHEMA_VERSION,
        session_id=session_id,
        job_name=job_name,
        workflow_name=workflow,
        instance_id=instance_id,
        goal=goal,
        current_step_id=next(iter(instructions)),
        started_at=now,
        branch_name=branch_name(job_name, workflow, instance_id or now[:10].replace("-", "")),
        principal=principal,
        parents=parents,
        git=git,
        definition=definition,
        strict=strict,
    )
    detail: dict[str, Any] = {"principal": principal, "goal": goal}
    session = record(session, now, EventKind.STARTED, detail=detail)
    return _begin_entry(session, 0, instructions, now)


def branch_name(job: str, workflow: str, instance: str) -> str:
    """Name a git branch for a session; what git would refuse in a name becomes `-`."""
    name = re.sub(r"[^A-Za-z0-9._-]+|\.{2,}", "-", f"{job}-{workflow}-{instance}")
    name = re.sub(r"(\.lock)+$|\.+$", "-", name[:200])
    return f"deepwork/{name.lstrip('.-') or 'session'}"


def is_open(session: Session, step_id: str) -> bool:
    """Say whether a step can be completed now."""
    if not session.is_active or session.step_progress[step_id].completed_at:
        return False
    return step_id in entry_of(session.pinned, session.current_step_id)


def begin_attempt(session: Session, step_id: str, *, now: str) -> Session:
    """Count an attempt before anything is judged (JOBS-REQ-001.4.11)."""
    number = session.step_progress[step_id].quality_attempts + 1
    session = _update_progress(session, step_id, quality_attempts=number)
    return record(session, now, EventKind.ATTEMPT, step_id, {"number": number})


def return_attempt(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Take an attempt out of the count, because the work was not judged."""
    number = max(0, session.step_progress[step_id].quality_attempts - 1)
    session = _update_progress(session, step_id, quality_attempts=number)
    return record(session, now, EventKind.ATTEMPT_GIVEN_BACK, step_id, {"reason": reason})


def count_runner_failures(session: Session, step_id: str, failures: int) -> Session:
    """Note how many calls in a row got no verdict."""
    return _update_progress(session, step_id, runner_failures=failures)


def hand_back(session: Session, step_id: str, feedback: str, *, now: str) -> Session:
    """Note that the agent was told to have its work reviewed, and how."""
    return record(session, now, EventKind.REVIEW_HANDED_BACK, step_id, {"feedback": feedback})


def handed_back(session: Session, step_id: str) -> str | None:
    """Give what the agent was told when it had to have this step reviewed."""
    for entry in reversed(since_reopened(session)):
        if (entry.kind, entry.step_id) == (EventKind.REVIEW_HANDED_BACK, step_id):
            return entry.detail.get("feedback")
    return None


def ask_override(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Note that an agent wants a person to let a step pass; asking the same again is not noted."""
    last = next((entry for entry in reversed(session.history) if entry.step_id == step_id), None)
    is_repeated = last and last.kind == EventKind.OVERRIDE_ASKED and last.detail.get("reason") == reason
    if is_repeated or not is_open(session, step_id):
        return session
    return record(session, now, EventKind.OVERRIDE_ASKED, step_id, {"reason": reason})


def permit_override(session: Session, step_id: str, reason: str, permission: Mapping[str, Any], *, now: str) -> Session:
    """Note that a person lets a step pass without a review; it is used when the step is reported next."""
    return record(session, now, EventKind.OVERRIDE, step_id, {"reason": reason, "by": PERSON, **permission})


def permitted_override(session: Session, step_id: str) -> str | None:
    """Give the reason of a person's override that no report of the step has used yet."""
    for entry in reversed(since_reopened(session)):
        if entry.step_id == step_id and entry.kind in (EventKind.STEP_COMPLETED, EventKind.STEP_BEGUN):
            return None
        if (entry.kind, entry.step_id, entry.detail.get("by")) == (EventKind.OVERRIDE, step_id, PERSON):
            return str(entry.detail.get("reason"))
    return None


def complete(session: Session, completion: Completion, *, now: str) -> Session:
    """Complete a step of the current entry; that of the primary step completes the entry and begins the next."""
    if completion.step_id == session.current_step_id:
        return _complete_entry(session, completion, now)
    reply = RecordedReply(
        status=StepStatus.NEXT_STEP, begun_step=session.current_step_id, notices=list(completion.notices)
    )
    return _complete_step(session, completion, reply, now)


def recorded_abort(session: Session, explanation: str, resumed: SessionSummary | None) -> RecordedAbort:
    """Say what was aborted, and to which workflow that returns."""
    return RecordedAbort(
        aborted_workflow=session.workflow,
        aborted_step=session.current_step_id,
        explanation=explanation,
        resumed_workflow=resumed.workflow if resumed else None,
        resumed_step=resumed.step_id if resumed else None,
        notices=back_to(resumed),
    )


def back_to(parent: SessionSummary | None) -> list[str]:
    """Tell which workflow goes on when the one above it has ended."""
    if parent is None:
        return []
    where = f"session_id={parent.session_id!r}, step_id={parent.step_id!r}"
    return [f"Back in {parent.workflow}: {where}."]


def abort(session: Session, reply: RecordedAbort, *, now: str) -> Session:
    """End a session before its end."""
    update = {
        "status": SessionStatus.ABORTED,
        "completed_at": now,
        "abort_reason": reply.explanation,
        "abort_reply": reply,
    }
    session = session.model_copy(update=update)
    return record(session, now, EventKind.ABORTED, reply.aborted_step, {"explanation": reply.explanation})


def next_entry(session: Session) -> list[str]:
    """Give the entry after the current one; empty at the end."""
    following = session.pinned.workflow.entries[session.current_entry_index + 1 :]
    return following[0] if following else []


def open_members(session: Session) -> list[str]:
    """List the members of the current group, without its primary, that nobody has reported."""
    members = entry_of(session.pinned, session.current_step_id)[1:]
    return [member for member in members if session.step_progress[member].completed_at is None]


def outputs_by_step(session: Session) -> dict[str, Outputs]:
    """Give what each step has made so far."""
    return {step_id: progress.outputs for step_id, progress in session.step_progress.items()}


def merged_outputs(session: Session) -> Outputs:
    """Merge what all steps have made so far."""
    step_ids = session.definition.workflow.step_ids if session.definition else [*session.step_progress]
    return _merged(step_ids, outputs_by_step(session))


def outputs_told_apart(session: Session) -> dict[str, Outputs] | None:
    """Give the outputs of each step, if merging them would lose any."""
    step_ids = session.definition.workflow.step_ids if session.definition else [*session.step_progress]
    return _told_apart(step_ids, outputs_by_step(session))


def open_steps(session: Session) -> list[str]:
    """List the steps that can be reported now."""
    if not session.is_active or session.definition is None:
        return []
    return [*open_members(session), session.current_step_id]


def with_progress(session: Session, progress: StepProgress) -> Session:
    """Put the progress of one step into a session."""
    return session.model_copy(update={"step_progress": {**session.step_progress, progress.step_id: progress}})


def since_reopened(session: Session) -> list[HistoryEntry]:
    """Give the history of the steps as they are open now: reviews before a step was reopened no longer count."""
    kinds = [entry.kind for entry in session.history]
    if EventKind.REOPENED not in kinds:
        return session.history
    return session.history[len(kinds) - kinds[::-1].index(EventKind.REOPENED) :]


def record(
    session: Session,
    now: str,
    kind: EventKind,
    step_id: str | None = None,
    detail: dict[str, Any] | None = None,
) -> Session:
    """Add to the history."""
    entry = HistoryEntry(at=now, kind=kind, step_id=step_id, detail=detail or {})
    return session.model_copy(update={"history": [*session.history, entry], "updated_at": now})


def record_all(
    session: Session, step_id: str, events: Iterable[tuple[EventKind, dict[str, Any]]], *, now: str
) -> Session:
    """Add several events of a step to the history."""
    for kind, detail in events:
        session = record(session, now, kind, step_id, detail)
    return session


def _complete_entry(session: Session, completion: Completion, now: str) -> Session:
    unreported = open_members(session)
    notices = list(completion.notices)
    if unreported:
        notices.append(f"Completed without outputs, never reported: {', '.join(unreported)}")
    if completion.next_instructions:
        first = next(iter(completion.next_instructions))
        reply = RecordedReply(status=StepStatus.NEXT_STEP, begun_step=first, notices=notices)
    else:
        reply = _final_reply(session, completion, notices)
    session = _complete_step(session, completion, reply, now)
    for member in unreported:
        session = _update_progress(session, member, completed_at=now)
        session = record(session, now, EventKind.STEP_COMPLETED, member, {"reported": False})
    if completion.next_instructions:
        return _begin_entry(session, session.current_entry_index + 1, completion.next_instructions, now)
    session = session.model_copy(update={"status": SessionStatus.COMPLETED, "completed_at": now})
    return record(session, now, EventKind.COMPLETED)


def _final_reply(session: Session, completion: Completion, notices: list[str]) -> RecordedReply:
    step_ids = session.pinned.workflow.step_ids
    by_step = {**outputs_by_step(session), completion.step_id: completion.outputs}
    steps = "step" if len(step_ids) == 1 else "steps"
    return RecordedReply(
        status=StepStatus.WORKFLOW_COMPLETE,
        summary=f"Workflow {session.workflow_name!r} completed: {len(step_ids)} {steps}.",
        all_outputs=_merged(step_ids, by_step),
        outputs_by_step=_told_apart(step_ids, by_step),
        notices=notices,
    )


def _merged(step_ids: Iterable[str], by_step: Mapping[str, Outputs]) -> Outputs:
    """Merge outputs by name; of two steps with one output name the later wins."""
    merged: Outputs = {}
    for step_id in step_ids:
        merged.update(by_step.get(step_id, {}))
    return merged


def _told_apart(step_ids: Iterable[str], by_step: Mapping[str, Outputs]) -> dict[str, Outputs] | None:
    """Give the outputs of each step where two have an output of one name, so that merging loses one of them."""
    outputs = {step_id: by_step.get(step_id, {}) for step_id in step_ids}
    names = [name for step_outputs in outputs.values() for name in step_outputs]
    return outputs if len(names) > len(set(names)) else None


def _begin_entry(session: Session, index: int, instructions: Mapping[str, str], now: str) -> Session:
    by_step = outputs_by_step(session)
    session = session.model_copy(update={"current_entry_index": index, "current_step_id": next(iter(instructions))})
    for step_id, text in instructions.items():
        begun = begun_step(session.pinned, step_id, text, by_step)
        session = with_progress(session, StepProgress(step_id=step_id, started_at=now, begun=begun))
        session = record(session, now, EventKind.STEP_BEGUN, step_id)
    return session


def _complete_step(session: Session, completion: Completion, reply: RecordedReply, now: str) -> Session:
    step_id, override = completion.step_id, completion.override
    if completion.gate_off:
        session = record(session, now, EventKind.GATE_OFF, step_id)
    if override and permitted_override(session, step_id) is None:
        kind, detail = _override(session, completion)
        session = record(session, now, kind, step_id, detail)
    session = _update_progress(
        session,
        step_id,
        completed_at=now,
        outputs=completion.outputs,
        reported=completion.reported,
        notes=completion.notes,
        override_reason=override,
        reply=reply,
        digests=dict(completion.digests),
    )
    session = session.model_copy(update={"git": completion.git})
    return record(session, now, EventKind.STEP_COMPLETED, step_id, {"outputs": completion.outputs})


def _override(session: Session, completion: Completion) -> tuple[EventKind, dict[str, Any]]:
    """Tell the report of a passed self-review from an override, and mark one before any review was asked for."""
    entries = reversed(since_reopened(session))
    last = next((entry.kind for entry in entries if _is_review(entry, completion.step_id)), None)
    detail: dict[str, Any] = {"reason": completion.override}
    if completion.permission is not None:
        return EventKind.OVERRIDE, {**detail, "by": PERSON, **completion.permission}
    if last == EventKind.REVIEW_HANDED_BACK:
        return EventKind.SELF_REVIEW, detail
    if last is None and session.pinned.steps[completion.step_id].reviews:
        detail["before_review"] = True
    return EventKind.OVERRIDE, detail


def _is_review(entry: HistoryEntry, step_id: str) -> bool:
    reviews = (EventKind.REVIEW_HANDED_BACK, EventKind.ATTEMPT, EventKind.VERDICT, EventKind.INFRASTRUCTURE)
    return entry.step_id == step_id and entry.kind in reviews


def _update_progress(session: Session, step_id: str, **update: Any) -> Session:
    return with_progress(session, session.step_progress[step_id].model_copy(update=update))
