"""From one state of a session to the next. Pure: no I/O, and the time comes in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from deepwork.engine.begin import entry_of
from deepwork.models.replies import AbortedWorkflow, Outputs, StepStatus
from deepwork.models.sessions import (
    SCHEMA_VERSION,
    BegunStep,
    EventKind,
    HistoryEntry,
    PinnedDefinition,
    RecordedReply,
    Session,
    SessionStatus,
    SessionSummary,
    StepProgress,
)


def new_session(
    session_id: str,
    definition: PinnedDefinition,
    begun: list[BegunStep],
    *,
    job_name: str,
    goal: str,
    instance_id: str | None,
    principal: str,
    parents: list[str],
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
        current_step_id=begun[0].step_id,
        started_at=now,
        branch_name=branch_name(job_name, workflow, instance_id or now[:10].replace("-", "")),
        principal=principal,
        parents=parents,
        definition=definition,
    )
    detail: dict[str, Any] = {"principal": principal, "goal": goal}
    session = record(session, now, EventKind.STARTED, detail=detail)
    return _begin_entry(session, 0, begun, now)


def branch_name(job: str, workflow: str, instance: str) -> str:
    """Name a git branch for a session; what git would refuse in a name becomes `-`."""
    name = re.sub(r"[^A-Za-z0-9._-]+|\.{2,}", "-", f"{job}-{workflow}-{instance}")
    name = re.sub(r"(\.lock)+$|\.+$", "-", name[:200])
    return f"deepwork/{name.lstrip('.-') or 'session'}"


def hand_back(session: Session, step_id: str, feedback: str, *, now: str) -> Session:
    """Note that the agent was told to have its work reviewed, and how."""
    return record(session, now, EventKind.REVIEW_HANDED_BACK, step_id, {"feedback": feedback})


def handed_back(session: Session, step_id: str) -> str | None:
    """Give what the agent was told when it had to have this step reviewed."""
    told = [entry for entry in session.history if (entry.kind, entry.step_id) == ("review_handed_back", step_id)]
    return told[-1].detail.get("feedback") if told else None


def complete_member(
    session: Session, step_id: str, outputs: Outputs, *, notes: str | None, override: str | None, now: str
) -> Session:
    """Complete a step of the current group that is not its primary; the group stays current."""
    reply = RecordedReply(status=StepStatus.NEXT_STEP, begun_step=session.current_step_id)
    return _complete(session, step_id, outputs, reply, notes=notes, override=override, now=now)


def complete_entry(
    session: Session,
    outputs: Outputs,
    begun: list[BegunStep],
    *,
    notes: str | None,
    override: str | None,
    now: str,
) -> Session:
    """Complete the current step, and with it its group, and begin the next entry if there is one."""
    definition, step_id = session.pinned, session.current_step_id
    unreported = unreported_members(session)
    notices = [f"Completed without outputs, never reported: {', '.join(unreported)}"] if unreported else []
    by_step = {**outputs_by_step(session), step_id: outputs}
    if begun:
        reply = RecordedReply(status=StepStatus.NEXT_STEP, begun_step=begun[0].step_id, notices=notices)
    else:
        count = len(definition.workflow.step_ids)
        reply = RecordedReply(
            status=StepStatus.WORKFLOW_COMPLETE,
            summary=f"Workflow {session.workflow_name!r} completed: {count} {'step' if count == 1 else 'steps'}.",
            all_outputs=merged(definition, by_step),
            outputs_by_step={name: by_step.get(name, {}) for name in definition.workflow.step_ids},
            notices=notices,
        )
    session = _complete(session, step_id, outputs, reply, notes=notes, override=override, now=now)
    for member in unreported:
        progress = session.step_progress[member].model_copy(update={"completed_at": now})
        session = with_progress(session, progress)
        session = record(session, now, EventKind.STEP_COMPLETED, member, {"reported": False})
    if begun:
        return _begin_entry(session, session.current_entry_index + 1, begun, now)
    session = session.model_copy(update={"status": SessionStatus.COMPLETED, "completed_at": now})
    return record(session, now, EventKind.COMPLETED)


def aborted_reply(session: Session, explanation: str, resumed: SessionSummary | None) -> AbortedWorkflow:
    """Say what was aborted, and to which workflow that returns."""
    return AbortedWorkflow(
        aborted_workflow=session.workflow,
        aborted_step=session.current_step_id,
        explanation=explanation,
        stack=[],
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


def abort(session: Session, reply: AbortedWorkflow, *, now: str) -> Session:
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


def unreported_members(session: Session) -> list[str]:
    """List the members of the current group, without its primary, that nobody has reported."""
    members = entry_of(session.pinned, session.current_step_id)[1:]
    return [member for member in members if session.step_progress[member].completed_at is None]


def outputs_by_step(session: Session) -> dict[str, Outputs]:
    """Give what each step has made so far."""
    return {step_id: progress.outputs for step_id, progress in session.step_progress.items()}


def merged(definition: PinnedDefinition, by_step: dict[str, Outputs]) -> Outputs:
    """Merge all outputs by name; of two steps with one output name the later wins."""
    everything: Outputs = {}
    for step_id in definition.workflow.step_ids:
        everything.update(by_step.get(step_id, {}))
    return everything


def _begin_entry(session: Session, index: int, begun: Iterable[BegunStep], now: str) -> Session:
    steps = list(begun)
    session = session.model_copy(update={"current_entry_index": index, "current_step_id": steps[0].step_id})
    for step in steps:
        session = with_progress(session, StepProgress(step_id=step.step_id, started_at=now, begun=step))
        session = record(session, now, EventKind.STEP_BEGUN, step.step_id)
    return session


def _complete(
    session: Session,
    step_id: str,
    outputs: Outputs,
    reply: RecordedReply,
    *,
    notes: str | None,
    override: str | None,
    now: str,
) -> Session:
    update = {
        "completed_at": now,
        "outputs": outputs,
        "notes": notes,
        "override_reason": override,
        "reply": reply,
    }
    session = with_progress(session, session.step_progress[step_id].model_copy(update=update))
    if override:
        session = record(session, now, EventKind.OVERRIDE, step_id, {"reason": override})
    return record(session, now, EventKind.STEP_COMPLETED, step_id, {"outputs": outputs})


def with_progress(session: Session, progress: StepProgress) -> Session:
    """Put the progress of one step into a session."""
    return session.model_copy(update={"step_progress": {**session.step_progress, progress.step_id: progress}})


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
