"""What the agent is told besides the next step: recorded replies, notices, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from anyio import to_thread

from deepwork.engine.begin import begin_step, entry_of, pin
from deepwork.engine.progress import back_to
from deepwork.engine.resume import UNLISTED, active_sessions, resume_text
from deepwork.engine.sessions import StateManager
from deepwork.errors import CorruptSession, NoActiveSession, StateError, ToolError, UnknownSession
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job
from deepwork.models.replies import FinishedStep
from deepwork.models.sessions import Session, SessionStatus, StepProgress
from deepwork.ports.call import ToolCall
from deepwork.workspace import Workspace


def ended(session: Session) -> StateError:
    """Make the error for a call to a session that is over."""
    reason = f" ({session.abort_reason})" if session.abort_reason else ""
    return UnknownSession(
        f"Session {session.session_id!r} of {session.workflow} is over: {session.status}{reason}",
        hint="start_workflow begins a new one.",
    )


def recorded_step(session: Session, step_id: str | None, outputs: Mapping[str, Any]) -> StepProgress | None:
    """Find the completed step of which a call is a repeat; None if it is for an open one.

    Raises:
        StateError: The step is neither open, nor completed with these outputs.
    """
    done = session.step_progress.get(step_id or "")
    if done and done.reply and done.outputs == dict(outputs):
        return done
    if not session.is_active:
        raise ended(session)
    if step_id is None or step_id in entry_of(session.pinned, session.current_step_id):
        return None
    now = f"the current step is {session.current_step_id!r}; nothing was changed"
    if done and done.completed_at:
        how = "with other outputs" if done.reply else "with its group, never reported"
        raise StateError(f"Step {step_id!r} was already completed {how}; {now}")
    raise StateError(f"Step {step_id!r} is not the one to report in session {session.session_id!r}; {now}")


def repeated_step(session: Session, outputs: Mapping[str, Any]) -> str | None:
    """Say that these are the outputs of the step that was completed last; None if they are not."""
    done = _last_completed(session)
    if done is None or done.outputs != dict(outputs):
        return None
    over = "" if session.is_active else f", and with it the workflow {session.workflow} ({session.status})"
    return (
        f"These are the outputs of step {done.step_id!r}, which is already completed{over}: if its reply was lost, "
        "nothing else was"
    )


def _last_completed(session: Session) -> StepProgress | None:
    """Find the step that was reported last, by the order of the history; members completed with it do not count."""
    for entry in reversed(session.history):
        done = session.step_progress.get(entry.step_id or "")
        if entry.kind == "step_completed" and done and done.reply:
            return done
    return None


def _joined(sentences: list[str]) -> str:
    return ". ".join(sentence.removesuffix(".") for sentence in sentences)


class Answers:
    """Answers that need the store or the jobs."""

    def __init__(
        self, workspace: Workspace, sessions: StateManager, catalogue: Catalogue, clock: Callable[[], datetime]
    ) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._catalogue = catalogue
        self._clock = clock
        self._pinned: dict[str, tuple[Job, list[str]]] = {}

    async def of_step(self, call: ToolCall, session: Session, step: StepProgress) -> FinishedStep:
        """Give the recorded reply of a completed step, with the stack of now."""
        reply = step.reply
        if reply is None:
            raise StateError(f"Step {step.step_id!r} has no recorded reply")
        if not session.is_active:
            self._sessions.remove(call, session.session_id)
        return FinishedStep(
            status=reply.status,
            begin_step=begin_step(session, reply.begun_step) if reply.begun_step else None,
            summary=reply.summary,
            all_outputs=reply.all_outputs,
            outputs_by_step=reply.outputs_by_step,
            stack=await self._sessions.stack_entries(call, session),
            notices=[
                *reply.notices,
                *await self._news(call, session, reply.begun_step),
                *self._sessions.remarks(call),
            ],
        )

    async def no_session(self, call: ToolCall, error: ToolError, reported: Mapping[str, Any] | None) -> ToolError:
        """Add to the error of a call that meant no session those that can be resumed.

        `reported` are the outputs of a call that named no step: they may be those of a session that has just ended.
        """
        if not isinstance(error, NoActiveSession | UnknownSession | CorruptSession):
            return error
        summaries = await self._sessions.summaries(call)
        parts = [error.message, *self._sessions.remarks(call)]
        if reported is not None:
            over = [summary.session_id for summary in summaries if summary.status is not SessionStatus.ACTIVE]
            # A new connection, after a crash say, has ended none itself: then it is the one that ended last of all.
            last = await self._sessions.last_ended(call, otherwise=next(iter(over), None))
            parts += [text] if last and (text := repeated_step(last, reported)) else []
        active = [summary for summary in summaries if summary.status is SessionStatus.ACTIVE]
        damaged = await self._sessions.damaged(call)
        known = active_sessions(active, damaged, self._clock()) if call.may_list else UNLISTED
        return type(error)(_joined(parts), hint=f"{error.hint}\n{known}" if error.hint else known)

    async def rejected(
        self, call: ToolCall, session: Session, error: ToolError, outputs: Mapping[str, Any], *, named: str | None
    ) -> ToolError:
        """Add to a refusal what an agent that lost its memory, or a reply, has to know."""
        told_first = self._sessions.is_first_refusal(call, session.session_id)
        before = [session, await self._sessions.last_ended(call)] if named is None else []
        repeated = [text for one in before if one and (text := repeated_step(one, outputs))][:1]
        message = _joined([error.message, *repeated, *self._sessions.remarks(call)])
        if not session.is_active:
            return type(error)(message, hint=error.hint)
        lost = named is not None and named not in entry_of(session.pinned, session.current_step_id)
        to_be_told = repeated or lost or told_first
        return type(error)(message, hint=await self.resume_text(session) if to_be_told else error.hint)

    async def resume_text(self, session: Session) -> str:
        """Tell all that is needed to go on."""
        return await to_thread.run_sync(resume_text, session, self._workspace)

    async def _news(self, call: ToolCall, session: Session, begun_step: str | None) -> list[str]:
        if not session.is_active:
            over = [f"The workflow is over: {session.status}."] if begun_step else []
            return over + back_to(next(reversed(await self._sessions.stack(call)), None))
        if begun_step != session.current_step_id:
            return [f"This step was completed before; the current step is {session.current_step_id!r}."]
        return await to_thread.run_sync(self._edited, session)

    def _edited(self, session: Session) -> list[str]:
        """Say that the job file is no longer what the session runs on."""
        job = self._catalogue.find(session.job_name)
        if isinstance(job, Job) and session.pinned.digest in self._digests(job):
            return []
        return ["The job's definition has changed since this session started; it goes on as it began."]

    def _digests(self, job: Job) -> list[str]:
        """Give the digests of a job's workflows; a job file that has not changed is the same object."""
        known, digests = self._pinned.get(job.name, (None, []))
        if known is not job:
            digests = [pin(job, flow).digest for flow in job.definition.workflows]
            self._pinned[job.name] = job, digests
        return digests
