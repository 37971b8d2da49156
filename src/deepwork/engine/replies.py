"""What the agent is told: how a step begins, replies, recorded ones included, and refusals with the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from deepwork.engine.reports import recorded_step, repeated_step, session_over
from deepwork.engine.resume import (
    UNLISTED,
    active_sessions,
    members_text,
    report_call,
    resume_text,
)
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
from deepwork.gate.decision import Decision, DecisionKind
from deepwork.models.jobs import Job, Step
from deepwork.models.outputs import KINDS
from deepwork.models.replies import (
    AbortedWorkflow,
    BeginStep,
    ExpectedOutput,
    FinishedStep,
    GroupMember,
    ReviewInfo,
    StepInputInfo,
)
from deepwork.models.sessions import Session, SessionStatus, StepProgress, StepStatus
from deepwork.models.standing import resume_call
from deepwork.ports.call import ToolCall
from deepwork.sessions.definition import Definitions
from deepwork.sessions.manager import StateManager, View
from deepwork.sessions.notes import Entry, StepNote, entries_of, notes_on_report, open_notes, open_texts, quoted_notes
from deepwork.sessions.stacks import ConnectionState
from deepwork.sessions.standing import open_steps
from deepwork.sessions.transitions import Completion, back_to, outputs_of
from deepwork.text import one_line


def begin_step(session: Session, step_id: str, open_members: Sequence[str] | None = None) -> BeginStep:
    """Return how to begin the step that ends an entry, always from what the session holds.

    A reply that is given again names the other members of its group that were open then; else those of now are.
    """
    definition = session.pinned
    entry = next(entry for entry in definition.workflow.entries if step_id in entry)
    if open_members is None:
        open_members = open_steps(session)[:-1]
    task = _task(session, definition.steps[step_id])
    if len(entry) > 1:
        task["step_instructions"] += _concurrent_text(session, step_id, open_members)
    return BeginStep(
        session_id=session.session_id,
        job_dir=definition.job_dir,
        common_job_info=definition.common_job_info,
        branch_name=session.branch_name if entry is definition.workflow.entries[0] else None,
        concurrent_steps=[GroupMember(**_task(session, definition.steps[member])) for member in open_members],
        **task,
    )


def _task(session: Session, step: Step) -> dict[str, Any]:
    """Return what an agent is told to do in a step (JOBS-REQ-001.3.13, 14): fields of `BeginStep` and `GroupMember`."""
    progress = session.step_progress.get(step.id)
    begun = progress and progress.begun
    return {
        "step_id": step.id,
        "step_expected_outputs": [
            ExpectedOutput(
                name=name,
                type=output.type,
                description=output.description,
                required=output.required,
                syntax_for_finished_step_tool=KINDS[output.type].syntax,
            )
            for name, output in step.outputs.items()
        ],
        "step_reviews": [
            ReviewInfo(
                run_each=review.run_each,
                quality_criteria=review.quality_criteria,
                additional_review_guidance=review.additional_review_guidance,
            )
            for review in step.reviews
        ],
        "step_inputs": [
            StepInputInfo(name=item.name, description=item.description, from_step=item.from_step, path=item.path)
            for item in (begun.inputs if begun else ())
        ],
        "step_instructions": begun.instructions if begun else "",
    }


def _concurrent_text(session: Session, step_id: str, open_members: Sequence[str]) -> str:
    """Return how to do a group."""
    text = f"\n\n**CONCURRENT STEPS**\n\n{members_text(step_id, open_members)}"
    if not open_members:
        return text
    return (
        f"{text} Use the Task tool to give {' and '.join(open_members)} to "
        f"{'a sub-agent' if len(open_members) == 1 else 'sub-agents, one each'}; what they need is in "
        f"concurrent_steps. Report those first, each by finished_step(session_id={session.session_id!r}, "
        f"step_id=<its id>, outputs=<its own>), and {step_id!r} last."
    )


def _joined(sentences: list[str]) -> str:
    return ". ".join(sentence.removesuffix(".") for sentence in sentences)


@dataclass(frozen=True)
class ReplyContext:
    """What a reply about a step is made of.

    Attributes:
        call: Whose reply it is.
        session: The session.
        changes: What has changed in the job's definition since the session started.
        view: The other sessions of the stack, if they need not be read again.
    """

    call: ToolCall
    session: Session
    changes: list[str]
    view: View | None

    @cached_property
    def entries(self) -> list[Entry]:
        """The notes of people in the history of the session, and what happened to them."""
        return entries_of(self.session)


class Replies:
    """Replies that need the store or the jobs."""

    def __init__(self, sessions: StateManager, definitions: Definitions) -> None:
        self._sessions = sessions
        self._definitions = definitions

    async def of_decision(
        self, context: ReplyContext, completion: Completion, decision: Decision | None
    ) -> FinishedStep:
        """Tell what was decided on a reported step; without a decision, what is recorded of it.

        Raises:
            ToolError: The decision is a refusal, or the step is neither completed nor judged.
        """
        if decision and decision.error:
            raise decision.error
        session, connection = context.session, self._sessions.connection(context.call)
        if decision and decision.kind is not DecisionKind.PASSED:
            notes = _new_notes(connection, session, context.entries, completion.step_id)
            return FinishedStep(
                status=StepStatus.NEEDS_WORK,
                feedback="\n\n".join([*notes, decision.feedback]),
                failed_reviews=list(decision.failed_reviews) or None,
                comments=list(decision.comments),
                waits_for=decision.waits_for,
                stack=await self._sessions.stack_entries(context.call, session),
                notices=[*completion.notices, *decision.notices, *connection.take_remarks()],
            )
        step = session.step_progress.get(completion.step_id)
        if not (step and step.reply and step.outputs == completion.outputs):  # another call was first
            step = recorded_step(session, completion.step_id, completion.outputs)
        if step is None:
            raise StaleSession("The review of this step was ended by another call; call again")
        notes = _new_notes(connection, session, context.entries, completion.step_id)
        reply = await self._of_step(context, step, notes)
        notices = decision.notices if decision else ()
        comments = list(decision.comments) if decision else []
        if not notices and not comments:
            return reply
        return reply.model_copy(update={"notices": [*notices, *reply.notices], "comments": comments})

    async def of_step(self, context: ReplyContext, step: StepProgress) -> FinishedStep:
        """Return the recorded reply of a completed step, with the stack of now and the notes that it was given."""
        return await self._of_step(context, step, quoted_notes(notes_on_report(context.entries, step.step_id)))

    async def _of_step(self, context: ReplyContext, step: StepProgress, notes: list[str]) -> FinishedStep:
        call, session, reply = context.call, context.session, step.reply
        if reply is None:
            raise StateError(f"Step {step.step_id!r} has no recorded reply")
        connection = self._sessions.connection(call)
        if not session.is_active:
            connection.end(session.session_id)
        return FinishedStep(
            status=reply.status,
            feedback="\n\n".join([*notes, *_open_texts(connection, session, context.entries)]) or None,
            begin_step=begin_step(session, reply.begun_step, reply.open_members) if reply.begun_step else None,
            summary=reply.summary,
            all_outputs=reply.all_outputs,
            outputs_by_step=reply.outputs_by_step,
            stack=await self._sessions.stack_entries(call, session, context.view),
            notices=[
                *reply.notices,
                *await self._changes_since(context, reply.begun_step),
                *connection.take_remarks(),
            ],
        )

    async def of_abort(self, call: ToolCall, session: Session, *, repeated: bool) -> AbortedWorkflow:
        """Return the recorded reply of an aborted session, with the stack of now."""
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
                *([] if repeated else self._sessions.connection(call).take_remarks()),
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
                notices=connection.take_remarks(),
            )
        reason = f" ({one_line(session.abort_reason)})" if session.abort_reason else ""
        all_outputs, by_step = outputs_of(session)
        return FinishedStep(
            status=StepStatus.WORKFLOW_COMPLETE,
            summary=f"Workflow {session.workflow} was {session.status}{reason}; there is nothing left to report. "
            "Tell the user what came of it. start_workflow is for new work only.",
            all_outputs=all_outputs,
            outputs_by_step=by_step,
            stack=stack,
            notices=connection.take_remarks(),
        )

    async def no_session(self, call: ToolCall, error: ToolError, outputs: Mapping[str, Any] | None) -> ToolError:
        """Add the sessions that can be resumed to the error of a call without a session.

        `outputs` come from a call that named no step: they may belong to a session that has just ended.
        """
        if not isinstance(error, NoActiveSession | UnknownSession | CorruptSession):
            return error
        summaries = await self._sessions.summaries(call)
        sentences = [error.message, *self._sessions.connection(call).take_remarks()]
        if outputs is not None:
            ended = [summary.session_id for summary in summaries if summary.status is not SessionStatus.ACTIVE]
            # After a reconnect this connection has ended no session: fall back to the session that ended last of all.
            last = await self._sessions.last_ended(call, default=next(iter(ended), None))
            sentences += [text] if last and (text := repeated_step(last, outputs)) else []
        active = [summary for summary in summaries if summary.status is SessionStatus.ACTIVE]
        damaged = await self._sessions.damaged(call)
        listing = active_sessions(active, damaged, self._sessions.clock()) if call.may_list else UNLISTED
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
        message = _joined([error.message, *owners, *repeated, *connection.take_remarks()])
        if not session.is_active:
            return type(error)(message, hint=error.hint)
        hints = [error.hint]
        if repeated or is_unbriefed or (is_lost and not owners):
            hints.append(await self._told_resume_text(call, session))
        else:
            step_ids = dict.fromkeys([step_id or session.current_step_id, *open_steps(session)])
            hints = [*_new_notes(connection, session, entries_of(session), *step_ids), *hints]
            if len(session.open_entry) > 1:
                hints.append(members_text(session.current_step_id, open_steps(session)[:-1]))
            if isinstance(error, OutputError) and step_id is None and not outputs:
                hints.append(f"If you have lost track, call {resume_call(session.session_id)}.")
        return type(error)(message, hint="\n".join(filter(None, hints)) or None)

    async def _owners(
        self, call: ToolCall, session: Session, error: ToolError, missing_step: str | None
    ) -> Iterable[str]:
        """Return sentences on which open steps unknown outputs belong to, or a step that the session does not have.

        They are members of its group, or steps of workflows below it.
        """
        unknown = error.names if isinstance(error, UnknownOutputs) else ()
        if not unknown and missing_step is None:
            return []
        below = [summary.session_id for summary in await self._sessions.stack(call, session)]
        sentences: list[str] = []
        for session_id in dict.fromkeys([session.session_id, *reversed(below)]):
            owner = session if session_id == session.session_id else await self._sessions.find(call, session_id)
            if owner is None:  # it was removed meanwhile
                continue
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

    async def _told_resume_text(self, call: ToolCall, session: Session, *, is_beside_step: bool = False) -> str:
        """Return the resume text, and note that its notes are told."""
        _open_texts(self._sessions.connection(call), session, entries_of(session))
        return await self._sessions.blocking(
            lambda: resume_text(session, self._sessions.workspace, is_beside_step=is_beside_step)
        )

    async def _changes_since(self, context: ReplyContext, begun_step: str | None) -> list[str]:
        """Return sentences on what has changed since the step was completed."""
        session = context.session
        if not session.is_active:
            over = [f"The workflow is over: {session.status}."] if begun_step else []
            stack = await self._sessions.stack(context.call, view=context.view)
            return over + back_to(next(reversed(stack), None))
        if begun_step != session.current_step_id:
            return [f"This step was completed before; the current step is {session.current_step_id!r}."]
        return context.changes

    def edited(self, session: Session, job: Job | JobLoadError | None) -> list[str]:
        """Return a notice if the job is no longer what the session runs on; none for a session that is over."""
        if not session.is_active:
            return []
        if isinstance(job, Job):
            definitions = (self._definitions.of(job, workflow) for workflow in job.definition.workflows)
            if any(definition.digest == session.pinned.digest for definition in definitions):
                return []
        return ["The job's definition has changed since this session started; it goes on as it began."]


def _open_texts(connection: ConnectionState, session: Session, entries: list[Entry]) -> list[str]:
    """Return what stands open for the steps that are open, and note that its notes are told."""
    step_ids = open_steps(session)[::-1]
    if texts := open_texts(entries, step_ids):
        for step_id in step_ids:
            connection.told_notes.update((session.session_id, note.at) for note in open_notes(entries, step_id))
    return texts


def _new_notes(connection: ConnectionState, session: Session, entries: list[Entry], *step_ids: str) -> list[str]:
    """Return the notes on reported steps that this connection was not told before their reports."""
    notes: list[StepNote] = []
    for step_id in step_ids:
        notes += notes_on_report(entries, step_id)
    if not notes:
        return []
    new = [note for note in notes if (session.session_id, note.at) not in connection.told_notes]
    connection.told_notes.update((session.session_id, note.at) for note in new)
    return quoted_notes(new)
