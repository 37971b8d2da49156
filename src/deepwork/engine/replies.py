"""What the agent is told: replies, recorded ones included, and refusals with the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from deepwork.engine.resume import UNLISTED, active_sessions, report_call, resume_call, resume_text
from deepwork.engine.steps import begin_step, group_text
from deepwork.errors import (
    CorruptSession,
    JobLoadError,
    NoActiveSession,
    OutputError,
    StaleSession,
    StateError,
    ToolError,
    UnknownOutputs,
    UnknownSession,
)
from deepwork.files.workspace import Workspace
from deepwork.gate.decision import Decision, DecisionKind
from deepwork.models.jobs import Job
from deepwork.models.replies import AbortedWorkflow, FinishedStep
from deepwork.models.sessions import Session, SessionStatus, StepProgress, StepStatus
from deepwork.ports.call import ToolCall
from deepwork.sessions.definition import Definitions, entry_of
from deepwork.sessions.manager import StateManager, View
from deepwork.sessions.notes import StepNote, entries_of, notes_on_report, open_notes, open_texts, quoted_notes
from deepwork.sessions.standing import last_completed, open_steps
from deepwork.sessions.transitions import Completion, back_to, merged_outputs, outputs_told_apart
from deepwork.text.foreign import one_line


def session_over(session: Session, *, hint: str | None = None) -> StateError:
    """Make the error for a call to a session that is over; the hint is for agents unless another one is given."""
    reason = f" ({one_line(session.abort_reason)})" if session.abort_reason else ""
    what_came_of_it = (
        f"There is nothing left to report. To see what came of it, call {resume_call(session.session_id)}; "
        "start_workflow is for new work only."
    )
    return UnknownSession(
        f"Session {session.session_id!r} of {session.workflow} is over: {session.status}{reason}",
        hint=hint or what_came_of_it,
    )


def recorded_step(session: Session, step_id: str | None, outputs: Mapping[str, Any]) -> StepProgress | None:
    """Find the completed step of which a call is a repeat; None if it is for an open one.

    Raises:
        StateError: The step is neither open, nor completed with these outputs.
    """
    progress = session.step_progress.get(step_id or "")
    if progress and progress.reply and _is_same(progress, outputs):
        return progress
    if not session.is_active:
        raise session_over(session)
    if step_id is None or step_id in entry_of(session.pinned, session.current_step_id):
        return None
    current = f"the current step is {session.current_step_id!r}; nothing was changed"
    if progress and progress.completed_at:
        how = "with other outputs" if progress.reply else "with its group, never reported"
        raise StateError(
            f"Step {step_id!r} was already completed {how}; {current}",
            hint=f"To have it done again, your user runs: deepwork sessions reopen {session.session_id} {step_id} "
            "--reason TEXT",
        )
    place = f"of {session.workflow}, session {session.session_id!r}"
    if step_id in session.pinned.workflow.step_ids:
        raise StateError(f"Step {step_id!r} comes later in the steps {place}; {current}")
    raise StateError(f"{step_id!r} is no step {place}; {current}")


def repeated_step(session: Session, outputs: Mapping[str, Any]) -> str | None:
    """Say that these are the outputs of the step that was completed last; None if they are not."""
    progress = last_completed(session)
    if session.status is SessionStatus.ABORTED or progress is None or not _is_same(progress, outputs):
        return None
    over = "" if session.is_active else f", and with it the workflow {session.workflow} ({session.status})"
    return (
        f"These are the outputs of step {progress.step_id!r}, which is already completed{over}; if you never saw its "
        "reply, nothing else is lost"
    )


def _is_same(progress: StepProgress, outputs: Mapping[str, Any]) -> bool:
    """Say whether outputs are those with which a step was completed, as the agent wrote them or as they were kept."""
    return dict(outputs) in (progress.outputs, progress.reported)


def _joined(sentences: list[str]) -> str:
    return ". ".join(sentence.removesuffix(".") for sentence in sentences)


class Replies:
    """Replies that need the store or the jobs."""

    def __init__(
        self,
        workspace: Workspace,
        sessions: StateManager,
        definitions: Definitions,
        clock: Callable[[], datetime],
    ) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._definitions = definitions
        self._clock = clock

    async def of_decision(
        self,
        call: ToolCall,
        session: Session,
        completion: Completion,
        decision: Decision | None,
        changes: list[str],
        view: View | None,
    ) -> FinishedStep:
        """Tell what was decided on a reported step; without a decision, what is recorded of it.

        Raises:
            ToolError: The decision is a refusal, or the step is neither completed nor judged.
        """
        if decision and decision.error:
            raise decision.error
        if decision and decision.kind is not DecisionKind.PASSED:
            notes = self._new_notes(call, session, completion.step_id)
            return FinishedStep(
                status=StepStatus.NEEDS_WORK,
                feedback="\n\n".join([*notes, decision.feedback]),
                failed_reviews=list(decision.failed_reviews) or None,
                stack=await self._sessions.stack_entries(call, session),
                notices=[*completion.notices, *decision.notices, *self._take_remarks(call)],
            )
        step = session.step_progress.get(completion.step_id)
        if not (step and step.reply and step.outputs == completion.outputs):  # another call was first
            step = recorded_step(session, completion.step_id, completion.outputs)
        if step is None:
            raise StaleSession("The review of this step was ended by another call; call again")
        notes = self._new_notes(call, session, completion.step_id)
        reply = await self._of_step(call, session, step, notes, changes, view)
        notices = decision.notices if decision else ()
        return reply.model_copy(update={"notices": [*notices, *reply.notices]}) if notices else reply

    async def of_step(
        self, call: ToolCall, session: Session, step: StepProgress, changes: list[str], view: View | None
    ) -> FinishedStep:
        """Return the recorded reply of a completed step, with the stack of now and the notes that it was given.

        Args:
            call: Whose reply it is.
            session: The session.
            step: The completed step.
            changes: What has changed in the job's definition since the session started.
            view: The other sessions of the stack, if they need not be read again.
        """
        notes = quoted_notes(notes_on_report(entries_of(session), step.step_id))
        return await self._of_step(call, session, step, notes, changes, view)

    async def _of_step(
        self,
        call: ToolCall,
        session: Session,
        step: StepProgress,
        notes: list[str],
        changes: list[str],
        view: View | None,
    ) -> FinishedStep:
        reply = step.reply
        if reply is None:
            raise StateError(f"Step {step.step_id!r} has no recorded reply")
        if not session.is_active:
            self._sessions.connection(call).end(session.session_id)
        return FinishedStep(
            status=reply.status,
            feedback="\n\n".join([*notes, *self._open_texts(call, session)]) or None,
            begin_step=begin_step(session, reply.begun_step, reply.open_members) if reply.begun_step else None,
            summary=reply.summary,
            all_outputs=reply.all_outputs,
            outputs_by_step=reply.outputs_by_step,
            stack=await self._sessions.stack_entries(call, session, view),
            notices=[
                *reply.notices,
                *await self._changes_since(call, session, reply.begun_step, changes, view),
                *self._take_remarks(call),
            ],
        )

    async def of_abort(self, call: ToolCall, session: Session, *, repeated: bool) -> AbortedWorkflow:
        """Give the recorded reply of an aborted session, with the stack of now."""
        reply = session.abort_reply
        if reply is None:
            raise session_over(session)
        return AbortedWorkflow(
            aborted_workflow=reply.aborted_workflow,
            aborted_step=reply.aborted_step,
            explanation=reply.explanation,
            stack=await self._sessions.stack_entries(call),
            resumed_workflow=reply.resumed_workflow,
            resumed_step=reply.resumed_step,
            notices=[
                *reply.notices,
                *await self._ended_next(call),
                *([] if repeated else self._take_remarks(call)),
            ],
        )

    async def _ended_next(self, call: ToolCall) -> list[str]:
        """Warn of a repeated call without an id, which would end the workflow below."""
        top = next(reversed(await self._sessions.stack(call)), None)
        if top is None:
            return []
        return [f"Another abort_workflow without session_id would end {top.workflow}, session {top.session_id!r}."]

    async def whereabouts(self, call: ToolCall, session: Session) -> FinishedStep:
        """Answer `step_id="?"`: where a session is, or what came of it. Nothing is changed."""
        stack = await self._sessions.stack_entries(call, session)
        connection = self._sessions.connection(call)
        connection.unbriefed.discard(session.session_id)
        if session.is_active:
            return FinishedStep(
                status=StepStatus.NEEDS_WORK,
                feedback=await self._told_resume_text(call, session, is_beside_step=True),
                begin_step=begin_step(session, session.current_step_id),
                stack=stack,
                notices=self._take_remarks(call),
            )
        reason = f" ({one_line(session.abort_reason)})" if session.abort_reason else ""
        return FinishedStep(
            status=StepStatus.WORKFLOW_COMPLETE,
            summary=f"Workflow {session.workflow} was {session.status}{reason}; there is nothing left to report. "
            "Tell the user what came of it. start_workflow is for new work only.",
            all_outputs=merged_outputs(session),
            outputs_by_step=outputs_told_apart(session),
            stack=stack,
            notices=self._take_remarks(call),
        )

    async def no_session(self, call: ToolCall, error: ToolError, outputs: Mapping[str, Any] | None) -> ToolError:
        """Add to the error of a call that meant no session those that can be resumed.

        `outputs` are those of a call that named no step: they may be those of a session that has just ended.
        """
        if not isinstance(error, NoActiveSession | UnknownSession | CorruptSession):
            return error
        summaries = await self._sessions.summaries(call)
        sentences = [error.message, *self._take_remarks(call)]
        if outputs is not None:
            ended = [summary.session_id for summary in summaries if summary.status is not SessionStatus.ACTIVE]
            # After a reconnect this connection has ended no session: fall back to the one that ended last of all.
            last = await self._sessions.last_ended(call, default=next(iter(ended), None))
            sentences += [text] if last and (text := repeated_step(last, outputs)) else []
        active = [summary for summary in summaries if summary.status is SessionStatus.ACTIVE]
        damaged = await self._sessions.damaged(call)
        listing = active_sessions(active, damaged, self._clock()) if call.may_list else UNLISTED
        return type(error)(_joined(sentences), hint=f"{error.hint}\n{listing}" if error.hint else listing)

    async def refusal(
        self, call: ToolCall, session: Session, error: ToolError, outputs: Mapping[str, Any], *, step_id: str | None
    ) -> ToolError:
        """Add to a refusal what an agent that lost its memory, or a reply, has to know."""
        connection = self._sessions.connection(call)
        is_unbriefed = session.session_id in connection.unbriefed
        connection.unbriefed.discard(session.session_id)
        candidates = [session, await self._sessions.last_ended(call)] if step_id is None else []
        repeated = [text for item in candidates if item and (text := repeated_step(item, outputs))][:1]
        is_lost = step_id is not None and step_id not in open_steps(session)
        owners = await self._owners(call, session, error, step_id if is_lost else None)
        message = _joined([error.message, *owners, *repeated, *self._take_remarks(call)])
        if not session.is_active:
            return type(error)(message, hint=error.hint)
        hints = [error.hint]
        if repeated or is_unbriefed or (is_lost and not owners):
            hints.append(await self._told_resume_text(call, session))
        else:
            reported = step_id or session.current_step_id
            hints = [*self._new_notes(call, session, *({reported: None} | dict.fromkeys(open_steps(session)))), *hints]
            hints.append(group_text(session, session.current_step_id))
            if isinstance(error, OutputError) and step_id is None and not outputs:
                hints.append(f"If you have lost track, call {resume_call(session.session_id)}.")
        return type(error)(message, hint="\n".join(filter(None, hints)) or None)

    async def _owners(
        self, call: ToolCall, session: Session, error: ToolError, missing_step: str | None
    ) -> Iterable[str]:
        """Say to which open steps unknown outputs belong, or a step that the session does not have.

        They are members of its group, or steps of workflows below it.
        """
        unknown = error.names if isinstance(error, UnknownOutputs) else ()
        if not unknown and missing_step is None:
            return []
        below = [summary.session_id for summary in await self._sessions.stack(call, session)]
        sentences: list[str] = []
        for session_id in dict.fromkeys([session.session_id, *reversed(below)]):
            owner = session if session_id == session.session_id else await self._sessions.reload(session_id)
            for step_id in open_steps(owner):
                names = [name for name in unknown if name in owner.pinned.steps[step_id].outputs]
                if names:
                    subject = f"{', '.join(map(repr, names))} of step {step_id!r} of {owner.workflow}"
                elif step_id == missing_step:
                    subject = f"Step {step_id!r} is open in {owner.workflow}"
                else:
                    continue
                sentences.append(f"{subject}: report with {report_call(session_id, step_id)}")
        return sentences

    async def resume_text(self, session: Session) -> str:
        """Tell all that is needed to go on."""
        return await self._sessions.blocking(lambda: resume_text(session, self._workspace))

    async def _told_resume_text(self, call: ToolCall, session: Session, *, is_beside_step: bool = False) -> str:
        """Return the resume text, and note that its notes are told."""
        self._open_texts(call, session)
        return await self._sessions.blocking(
            lambda: resume_text(session, self._workspace, is_beside_step=is_beside_step)
        )

    def _open_texts(self, call: ToolCall, session: Session) -> list[str]:
        """Return what stands open for the steps that are open, and note that its notes are told."""
        entries, step_ids = entries_of(session), open_steps(session)[::-1]
        for step_id in step_ids:
            self._note_told(call, session, open_notes(entries, step_id))
        return open_texts(entries, step_ids)

    def _new_notes(self, call: ToolCall, session: Session, *step_ids: str) -> list[str]:
        """Return the notes on reported steps that this connection was not told before their reports."""
        entries, told = entries_of(session), self._sessions.connection(call).told_notes
        notes = [
            note
            for step_id in step_ids
            for note in notes_on_report(entries, step_id)
            if (session.session_id, note.at) not in told
        ]
        self._note_told(call, session, notes)
        return quoted_notes(notes)

    def _note_told(self, call: ToolCall, session: Session, notes: Iterable[StepNote]) -> None:
        self._sessions.connection(call).told_notes.update((session.session_id, note.at) for note in notes)

    def _take_remarks(self, call: ToolCall) -> list[str]:
        return self._sessions.connection(call).take_remarks()

    async def _changes_since(
        self, call: ToolCall, session: Session, begun_step: str | None, changes: list[str], view: View | None
    ) -> list[str]:
        """Say what has changed since the step was completed."""
        if not session.is_active:
            over = [f"The workflow is over: {session.status}."] if begun_step else []
            stack = await self._sessions.stack(call, view=view)
            return over + back_to(next(reversed(stack), None))
        if begun_step != session.current_step_id:
            return [f"This step was completed before; the current step is {session.current_step_id!r}."]
        return changes

    def edited(self, session: Session, job: Job | JobLoadError | None) -> list[str]:
        """Return a notice if the job is no longer what the session runs on; none for a session that is over."""
        if not session.is_active:
            return []
        if isinstance(job, Job):
            definitions = (self._definitions.of(job, workflow) for workflow in job.definition.workflows)
            if any(definition.digest == session.pinned.digest for definition in definitions):
                return []
        return ["The job's definition has changed since this session started; it goes on as it began."]
