"""From one state of a session to the next. Pure: no I/O, and the time comes in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from deepwork.errors import StateError
from deepwork.models import history
from deepwork.models.history import HistoryEntry
from deepwork.models.outputs import Outputs, files_of
from deepwork.models.reviews import Limits
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
from deepwork.models.standing import PERSON, paused_text
from deepwork.sessions.definition import begun_step, with_digests
from deepwork.sessions.standing import is_asked, is_open, last_review, open_steps, paused, permitted_override

# So many files of a report are named in the history before the report is accepted.
MAX_FILES = 20


@dataclass(frozen=True)
class Completion:
    """The data of a completed step.

    Attributes:
        reported: The outputs as the agent wrote them, if their paths were resolved to others.
        override: Why the step is not reviewed.
        gate_off: Whether it has reviews that are not made, because the quality gate is off.
        permission: Who has allowed that, if a person has.
        notices: What the agent should know about its outputs.
        digests: The digests of the completed files.
        git: Branch and commit at this moment.
        agent: Which agent of a run reports it, if one does.
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
    agent: str | None = None


@dataclass(frozen=True)
class Beginning:
    """The data of a workflow that is started.

    Attributes:
        instructions: Those of the steps that begin with it.
        parents: The sessions below it, the lowest first.
        git: Branch and commit at this moment.
    """

    job_name: str
    goal: str
    definition: PinnedDefinition
    instructions: Mapping[str, str]
    principal: str
    instance_id: str | None = None
    parents: Sequence[str] = ()
    git: GitPlace | None = None
    strict: bool = False


def new_session(session_id: str, beginning: Beginning, *, now: str) -> Session:
    """Make a session whose first entry has begun."""
    workflow = beginning.definition.workflow.name
    instance = beginning.instance_id or now[:10].replace("-", "")
    session = Session(
        schema_version=SCHEMA_VERSION,
        session_id=session_id,
        job_name=beginning.job_name,
        workflow_name=workflow,
        instance_id=beginning.instance_id,
        goal=beginning.goal,
        current_step_id=next(iter(beginning.instructions)),
        started_at=now,
        branch_name=branch_name(beginning.job_name, workflow, instance),
        principal=beginning.principal,
        parents=[*beginning.parents],
        git=beginning.git,
        definition=beginning.definition,
        strict=beginning.strict,
    )
    session = record(session, now, history.Started(principal=beginning.principal, goal=beginning.goal))
    return _begin_entry(session, 0, beginning.instructions, now)


def branch_name(job: str, workflow: str, instance: str) -> str:
    """Name a git branch for a session; what git would refuse in a name becomes `-`."""
    name = re.sub(r"[^A-Za-z0-9._-]+|\.{2,}", "-", f"{job}-{workflow}-{instance}")
    name = re.sub(r"(\.lock)+$|\.+$", "-", name[:200])
    return f"deepwork/{name.lstrip('.-') or 'session'}"


def begin_attempt(
    session: Session, completion: Completion, limits: Limits, *, now: str, kept: Mapping[str, Any]
) -> Session:
    """Count an attempt before anything is judged (JOBS-REQ-001.4.11), and note the limits for it and what is judged.

    `kept` says what of it is kept, for a step whose contents are kept.
    """
    step_id = completion.step_id
    number = session.step_progress[step_id].quality_attempts + 1
    attempt = history.Attempt(
        number=number,
        max_attempts=limits.attempts,
        max_failures=limits.failures,
        strict=limits.strict,
        files=_first_files(completion.outputs),
        **kept,
    )
    return record(session, now, attempt, step_id, quality_attempts=number)


def return_attempt(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Take an attempt out of the count, because the work was not judged."""
    number = max(0, session.step_progress[step_id].quality_attempts - 1)
    return record(session, now, history.GivenBack(reason=reason), step_id, quality_attempts=number)


def told_comments(session: Session, step_id: str, work: str, count: int) -> Session:
    """Note that the agent was told so many comments by a report of these files."""
    progress = session.step_progress[step_id]
    if progress.told_comments >= count:
        return session
    before = progress.told_before if progress.told_work == work else progress.told_comments
    told = {"told_comments": count, "told_before": before, "told_work": work}
    return session.model_copy(update={"step_progress": _updated_progress(session, step_id, **told)})


def count_runner_failures(session: Session, step_id: str, failures: int) -> Session:
    """Note how many calls in a row got no verdict."""
    if session.step_progress[step_id].runner_failures == failures:
        return session
    return session.model_copy(update={"step_progress": _updated_progress(session, step_id, runner_failures=failures)})


def hand_back(session: Session, step_id: str, feedback: str, *, now: str) -> Session:
    """Note that the agent was told to have its work reviewed, and how."""
    return record(session, now, history.HandedBack(feedback=feedback), step_id, handed_back=feedback)


def ask_override(session: Session, completion: Completion, answer: Mapping[str, Any], *, now: str) -> Session:
    """Note that an agent wants a person to let a step pass; asking the same again is not noted.

    `answer` tells of the client that has said yes without a person being seen; it is empty if none has.
    """
    step_id, files = completion.step_id, _first_files(completion.outputs)
    entry = history.OverrideAsked(reason=completion.override or "", files=files, **answer)
    if is_asked(session, step_id, entry) or not is_open(session, step_id):
        return session
    return record(session, now, entry, step_id)


def permit_override(session: Session, step_id: str, reason: str, permission: Mapping[str, Any], *, now: str) -> Session:
    """Note that a person lets a step pass without a review; it is used when the step is reported next."""
    return record(session, now, history.Override(reason=reason, by=PERSON, **permission), step_id)


def reopen(session: Session, step_id: str, reason: str, *, now: str) -> Session:
    """Make a step the current one: it and all later steps are open again, and their reports count as new ones.

    In a group, the step, its primary, and the unreported members are open again.

    Raises:
        StateError: The step is not one of the workflow, was not begun yet, or was begun under release 0.9.
    """
    if session.definition is None:
        raise StateError(f"Session {session.session_id!r} is of release 0.9, which kept no steps to go back to")
    entries = session.pinned.workflow.entries
    index = _entry_index(session, step_id)
    earlier = {name for entry in entries[:index] for name in entry}
    progress = {name: item for name, item in session.step_progress.items() if name in earlier}
    for name in entries[index]:
        item = session.step_progress[name]
        stays = item.completed_at and item.reply and name not in (step_id, entries[index][0])
        progress[name] = item if stays else _begun_again(item)
    session = session.model_copy(
        update={
            "status": SessionStatus.ACTIVE,
            "current_entry_index": index,
            "current_step_id": entries[index][0],
            "step_progress": progress,
            "completed_at": None,
            "abort_reason": None,
            "abort_reply": None,
        }
    )
    return record(session, now, history.Reopened(reason=reason), step_id)


def write_note(session: Session, step_id: str, text: str, author: Mapping[str, Any], *, now: str) -> Session:
    """Record a text to the agent of a step; it is told until the step is reported again."""
    return record(session, now, history.Note(text=text, at=now, **author), step_id)


def accept_definition(session: Session, permission: Mapping[str, Any], *, now: str) -> Session:
    """Note that a person goes on with a definition that was edited where it is stored, and make it the session's."""
    definition = with_digests(session.pinned)
    session = session.model_copy(update={"definition": definition})
    text = f"A person goes on with the definition as it was edited where it is stored: {definition.content_digest}"
    return record(session, now, history.Note(text=text, at=now, **{**permission, "by": PERSON}))


def pause(session: Session, reason: str, author: Mapping[str, Any], *, now: str) -> Session:
    """Note that a person has paused a session."""
    return record(session, now, history.Paused(reason=reason, **author))


def unpause(session: Session, author: Mapping[str, Any], *, now: str) -> Session:
    """Note that a person lets a session go on."""
    return record(session, now, history.Unpaused(**author))


def agent_gone(session: Session, client: str, *, now: str) -> Session:
    """Note that the client of an agent has ended. The session has not moved on by it: nobody is reminded again."""
    gone = record(session, now, history.AgentGone(client=client))
    return gone.model_copy(update={"updated_at": session.updated_at})


def check_not_paused(session: Session) -> None:
    """Refuse what an agent may not do in a paused session.

    Raises:
        StateError: A person has paused it.
    """
    if (current_pause := paused(session)) is not None:
        raise StateError(f"{paused_text(current_pause.reason)} Nothing was changed; session {session.session_id!r}")


def complete(session: Session, completion: Completion, *, now: str) -> Session:
    """Complete a step of the current entry; that of the primary step completes the entry and begins the next.

    Raises:
        StateError: A person has paused the session.
    """
    check_not_paused(session)
    if completion.step_id == session.current_step_id:
        return _complete_entry(session, completion, now)
    reply = RecordedReply(
        status=StepStatus.NEXT_STEP,
        begun_step=session.current_step_id,
        open_members=[step_id for step_id in open_steps(session)[:-1] if step_id != completion.step_id],
        notices=list(completion.notices),
    )
    return _complete_step(session, completion, reply, now)


def recorded_abort(session: Session, explanation: str, resumed: SessionSummary | None) -> RecordedAbort:
    """Return what was aborted, and the workflow that the agent returns to."""
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


def outputs_of(session: Session, last: Completion | None = None) -> tuple[Outputs, dict[str, Outputs] | None]:
    """Return what all steps have made, and the step that is completed last: merged, and by step if that loses any.

    Of two steps with one output name the later wins.
    """
    step_ids = session.definition.workflow.step_ids if session.definition else [*session.step_progress]
    made = session.outputs_by_step
    by_step = {step_id: made.get(step_id, {}) for step_id in step_ids}
    if last:
        by_step[last.step_id] = last.outputs
    merged = {name: value for outputs in by_step.values() for name, value in outputs.items()}
    return merged, by_step if sum(map(len, by_step.values())) > len(merged) else None


def record(session: Session, now: str, detail: history.Detail, step_id: str | None = None, **progress: Any) -> Session:
    """Add an event to the history, and with it what it changes in the progress of its step."""
    update: dict[str, Any] = {
        "history": [*session.history, HistoryEntry.of(detail, now, step_id)],
        "updated_at": now,
    }
    if step_id and progress:
        update["step_progress"] = _updated_progress(session, step_id, **progress)
    return session.model_copy(update=update)


def record_all(session: Session, step_id: str, details: Iterable[history.Detail], *, now: str) -> Session:
    """Add several events of a step to the history."""
    for detail in details:
        session = record(session, now, detail, step_id)
    return session


def _complete_entry(session: Session, completion: Completion, now: str) -> Session:
    unreported = open_steps(session)[:-1]
    notices = list(completion.notices)
    if unreported:
        notices.append(
            f"Completed without outputs, never reported: {', '.join(unreported)}. To have one done after all, your "
            f"user runs: deepwork sessions reopen {session.session_id} {unreported[0]} --reason TEXT"
        )
    if completion.next_instructions:
        first, *others = completion.next_instructions
        reply = RecordedReply(status=StepStatus.NEXT_STEP, begun_step=first, open_members=others, notices=notices)
    else:
        reply = _final_reply(session, completion, notices)
    session = _complete_step(session, completion, reply, now)
    for member in unreported:
        session = record(session, now, history.StepCompleted(reported=False), member, completed_at=now)
    if completion.next_instructions:
        return _begin_entry(session, session.current_entry_index + 1, completion.next_instructions, now)
    session = session.model_copy(update={"status": SessionStatus.COMPLETED, "completed_at": now})
    return record(session, now, history.Completed())


def _final_reply(session: Session, completion: Completion, notices: list[str]) -> RecordedReply:
    count = len(session.pinned.workflow.step_ids)
    merged, by_step = outputs_of(session, completion)
    return RecordedReply(
        status=StepStatus.WORKFLOW_COMPLETE,
        summary=f"Workflow {session.workflow_name!r} completed: {count} {'step' if count == 1 else 'steps'}.",
        all_outputs=merged,
        outputs_by_step=by_step,
        notices=notices,
    )


def _first_files(outputs: Outputs) -> list[str]:
    """Return the files that a history names of a report that may never be accepted."""
    return [path for path, _ in islice(files_of(outputs), MAX_FILES)]


def _begin_entry(session: Session, index: int, instructions: Mapping[str, str], now: str) -> Session:
    definition, earlier = session.pinned, session.step_progress
    session = session.model_copy(update={"current_entry_index": index, "current_step_id": next(iter(instructions))})
    for step_id, text in instructions.items():
        begun = begun_step(definition.steps[step_id], text, earlier)
        progress = StepProgress(step_id=step_id, started_at=now, begun=begun)
        session = session.model_copy(update={"step_progress": {**session.step_progress, step_id: progress}})
        session = record(session, now, history.StepBegun(), step_id)
    return session


def _complete_step(session: Session, completion: Completion, reply: RecordedReply, now: str) -> Session:
    step_id, override = completion.step_id, completion.override
    if completion.gate_off:
        session = record(session, now, history.GateOff(), step_id)
    if override and permitted_override(session, step_id) is None:
        session = record(session, now, _override(session, completion), step_id)
    session = session.model_copy(update={"git": completion.git})
    entry = history.StepCompleted(outputs=completion.outputs)
    if completion.agent:
        entry = history.StepCompleted(outputs=completion.outputs, agent=completion.agent)
    return record(
        session,
        now,
        entry,
        step_id,
        completed_at=now,
        outputs=completion.outputs,
        reported=completion.reported,
        notes=completion.notes,
        override_reason=override,
        reply=reply,
        digests=dict(completion.digests),
    )


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


def _updated_progress(session: Session, step_id: str, **update: Any) -> dict[str, StepProgress]:
    return {**session.step_progress, step_id: session.step_progress[step_id].model_copy(update=update)}


def _entry_index(session: Session, step_id: str) -> int:
    workflow = session.pinned.workflow
    if step_id not in workflow.step_ids:
        raise StateError(f"{step_id!r} is not a step of {session.workflow}; it has: {', '.join(workflow.step_ids)}")
    if step_id not in session.step_progress:
        begun = ", ".join(session.step_progress)
        raise StateError(f"Step {step_id!r} of {session.workflow} was not begun yet; begun were: {begun}")
    if session.step_progress[step_id].begun is None:
        raise StateError(f"Step {step_id!r} was done under release 0.9, which kept no instructions to go back to")
    return next(index for index, entry in enumerate(workflow.entries) if step_id in entry)


def _begun_again(progress: StepProgress) -> StepProgress:
    """Keep of a step only what it was begun with."""
    return StepProgress(step_id=progress.step_id, started_at=progress.started_at, begun=progress.begun)
