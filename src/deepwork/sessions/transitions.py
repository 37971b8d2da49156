"""From one state of a session to the next. Pure: no I/O, and the time comes in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deepwork.models import history
from deepwork.models.history import HistoryEntry
from deepwork.models.outputs import Outputs
from deepwork.models.sessions import (
    SCHEMA_VERSION,
    GitPlace,
    PinnedDefinition,
    RecordedAbort,
    RecordedReply,
    Session,
    SessionStatus,
    SessionSummary,
    StepProgress,
    StepStatus,
)
from deepwork.sessions.definition import begun_step, with_digests
from deepwork.sessions.notes import PERSON
from deepwork.sessions.standing import is_asked, is_open, last_review, open_members, permitted_override


@dataclass(frozen=True)
class Limits:
    """The limits under which an attempt is judged."""

    attempts: int
    failures: int
    strict: bool


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
    session = record(session, now, history.Started(principal=principal, goal=goal))
    return _begin_entry(session, 0, instructions, now)


def branch_name(job: str, workflow: str, instance: str) -> str:
    """Name a git branch for a session; what git would refuse in a name becomes `-`."""
    name = re.sub(r"[^A-Za-z0-9._-]+|\.{2,}", "-", f"{job}-{workflow}-{instance}")
    name = re.sub(r"(\.lock)+$|\.+$", "-", name[:200])
    return f"deepwork/{name.lstrip('.-') or 'session'}"


def begin_attempt(session: Session, step_id: str, limits: Limits, *, now: str) -> Session:
    """Count an attempt before anything is judged (JOBS-REQ-001.4.11), and note the limits for it."""
    number = session.step_progress[step_id].quality_attempts + 1
    session = _update_progress(session, step_id, quality_attempts=number)
    attempt = history.Attempt(
        number=number, max_attempts=limits.attempts, max_failures=limits.failures, strict=limits.strict
    )
    return record(session, now, attempt, step_id)


def return_attempt(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Take an attempt out of the count, because the work was not judged."""
    number = max(0, session.step_progress[step_id].quality_attempts - 1)
    session = _update_progress(session, step_id, quality_attempts=number)
    return record(session, now, history.GivenBack(reason=reason), step_id)


def count_runner_failures(session: Session, step_id: str, failures: int) -> Session:
    """Note how many calls in a row got no verdict."""
    return _update_progress(session, step_id, runner_failures=failures)


def hand_back(session: Session, step_id: str, feedback: str, *, now: str) -> Session:
    """Note that the agent was told to have its work reviewed, and how."""
    session = _update_progress(session, step_id, handed_back=feedback)
    return record(session, now, history.HandedBack(feedback=feedback), step_id)


def ask_override(session: Session, step_id: str, reason: str, answer: Mapping[str, Any], *, now: str) -> Session:
    """Note that an agent wants a person to let a step pass; asking the same again is not noted.

    Args:
        session: The session.
        step_id: The step.
        reason: The agent's reason.
        answer: The client that has said yes without a person being seen; empty if none has.
        now: The time.
    """
    asked = history.OverrideAsked(reason=reason, **answer)
    if is_asked(session, step_id, asked) or not is_open(session, step_id):
        return session
    return record(session, now, asked, step_id)


def permit_override(session: Session, step_id: str, reason: str, permission: Mapping[str, Any], *, now: str) -> Session:
    """Note that a person lets a step pass without a review; it is used when the step is reported next."""
    return record(session, now, history.Override(reason=reason, by=PERSON, **permission), step_id)


def begin_again(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Note that a person has made a step the current one again."""
    return record(session, now, history.Reopened(reason=reason), step_id)


def write_note(session: Session, step_id: str, text: str, author: Mapping[str, Any], *, now: str) -> Session:
    """Note what somebody has written to the agent of a step; it is told until the step is reported again."""
    return record(session, now, history.Note(text=text, at=now, **author), step_id)


def accept_definition(session: Session, permission: Mapping[str, Any], *, now: str) -> Session:
    """Note that a person goes on with a definition that was edited where it is stored, and make it the session's."""
    definition = with_digests(session.pinned)
    session = session.model_copy(update={"definition": definition})
    text = f"A person goes on with the definition as it was edited where it is stored: {definition.content_digest}"
    return record(session, now, history.Note(text=text, at=now, **{**permission, "by": PERSON}))


def complete(session: Session, completion: Completion, *, now: str) -> Session:
    """Complete a step of the current entry; that of the primary step completes the entry and begins the next."""
    if completion.step_id == session.current_step_id:
        return _complete_entry(session, completion, now)
    reply = RecordedReply(
        status=StepStatus.NEXT_STEP,
        begun_step=session.current_step_id,
        open_members=[member for member in open_members(session) if member != completion.step_id],
        notices=list(completion.notices),
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
    return record(session, now, history.Aborted(explanation=reply.explanation), reply.aborted_step)


def next_entry(session: Session) -> list[str]:
    """Give the entry after the current one; empty at the end."""
    following = session.pinned.workflow.entries[session.current_entry_index + 1 :]
    return following[0] if following else []


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


def with_progress(session: Session, progress: StepProgress) -> Session:
    """Put the progress of one step into a session."""
    return session.model_copy(update={"step_progress": {**session.step_progress, progress.step_id: progress}})


def record(session: Session, now: str, detail: history.Detail, step_id: str | None = None) -> Session:
    """Add to the history."""
    entry = HistoryEntry.of(detail, now, step_id)
    return session.model_copy(update={"history": [*session.history, entry], "updated_at": now})


def record_all(session: Session, step_id: str, details: Iterable[history.Detail], *, now: str) -> Session:
    """Add several events of a step to the history."""
    for detail in details:
        session = record(session, now, detail, step_id)
    return session


def _complete_entry(session: Session, completion: Completion, now: str) -> Session:
    unreported = open_members(session)
    notices = list(completion.notices)
    if unreported:
        notices.append(f"Completed without outputs, never reported: {', '.join(unreported)}")
    if completion.next_instructions:
        first, *others = completion.next_instructions
        reply = RecordedReply(status=StepStatus.NEXT_STEP, begun_step=first, open_members=others, notices=notices)
    else:
        reply = _final_reply(session, completion, notices)
    session = _complete_step(session, completion, reply, now)
    for member in unreported:
        session = _update_progress(session, member, completed_at=now)
        session = record(session, now, history.StepCompleted(reported=False), member)
    if completion.next_instructions:
        return _begin_entry(session, session.current_entry_index + 1, completion.next_instructions, now)
    session = session.model_copy(update={"status": SessionStatus.COMPLETED, "completed_at": now})
    return record(session, now, history.Completed())


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
        session = record(session, now, history.StepBegun(), step_id)
    return session


def _complete_step(session: Session, completion: Completion, reply: RecordedReply, now: str) -> Session:
    step_id, override = completion.step_id, completion.override
    if completion.gate_off:
        session = record(session, now, history.GateOff(), step_id)
    if override and permitted_override(session, step_id) is None:
        session = record(session, now, _override(session, completion), step_id)
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
    return record(session, now, history.StepCompleted(outputs=completion.outputs), step_id)


def _override(session: Session, completion: Completion) -> history.Detail:
    """Tell the report of a passed self-review from an override, and mark one before any review was asked for."""
    reason = completion.override
    if completion.permission is not None:
        return history.Override(reason=reason, by=PERSON, **completion.permission)
    review = last_review(session, completion.step_id)
    if isinstance(review, history.HandedBack):
        return history.SelfReview(reason=reason)
    if review is None and session.pinned.steps[completion.step_id].reviews:
        return history.Override(reason=reason, before_review=True)
    return history.Override(reason=reason)


def _update_progress(session: Session, step_id: str, **update: Any) -> Session:
    return with_progress(session, session.step_progress[step_id].model_copy(update=update))
