"""What the agent is told besides the next step: recorded replies, notices, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from anyio import to_thread

from deepwork.engine.begin import begin_step, entry_of, pin
from deepwork.engine.progress import back_to
from deepwork.engine.resume import active_sessions, resume_text, shortened
from deepwork.engine.sessions import StateManager
from deepwork.errors import NoActiveSession, StateError, ToolError, UnknownSession
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job
from deepwork.models.replies import FinishedStep
from deepwork.models.sessions import Session, StepProgress
from deepwork.ports.call import ToolCall
from deepwork.workspace import Workspace, write_durably


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
    """Find the step that was completed last, by the order of the history."""
    for entry in reversed(session.history):
        if entry.kind == "step_completed" and entry.step_id:
            return session.step_progress.get(entry.step_id)
    return None


class Answers:
    """Answers that need the store or the jobs."""

    def __init__(
        self, workspace: Workspace, sessions: StateManager, catalogue: Catalogue, clock: Callable[[], datetime]
    ) -> None:
        self._workspace = workspace
        self._sessions = sessions
        self._catalogue = catalogue
        self._clock = clock

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
            stack=await self._sessions.stack_entries(call),
            notices=[
                *reply.notices,
                *await self._news(call, session, reply.begun_step),
                *self._sessions.damage_met(call),
            ],
        )

    async def no_session(self, call: ToolCall, error: ToolError, outputs: Mapping[str, Any]) -> ToolError:
        """Add to the error of a call that meant no session those that can be resumed."""
        if not isinstance(error, NoActiveSession | UnknownSession):
            return error
        message = error.message
        ended_here = await self._sessions.last_ended(call)
        if ended_here and (repeated := repeated_step(ended_here, outputs)):
            message += f". {repeated}"
        active = await self._sessions.active()
        return type(error)(message, hint=active_sessions(active, await self._sessions.damaged(), self._clock()))

    async def rejected(
        self,
        call: ToolCall,
        session: Session,
        error: ToolError,
        outputs: Mapping[str, Any],
        *,
        named: str | None,
        adopted: bool,
    ) -> ToolError:
        """Add to a refusal what an agent that lost its memory, or a reply, has to know."""
        if not session.is_active:
            repeated = repeated_step(session, outputs) if named is None else None
            return type(error)(f"{error.message}. {repeated}", hint=error.hint) if repeated else error
        ended_here = await self._sessions.last_ended(call)
        before = [one for one in (session, ended_here) if one] if named is None else []
        repeated = next((text for one in before if (text := repeated_step(one, outputs))), None)
        lost = named is not None and named not in entry_of(session.pinned, session.current_step_id)
        if not (repeated or lost or adopted):
            return error
        message = f"{error.message}. {repeated}" if repeated else error.message
        return type(error)(message, hint=await self.resume_text(session))

    async def resume_text(self, session: Session) -> str:
        """Tell all that is needed to go on; what is too long for a reply is written to a file."""
        text = resume_text(session)
        path = self._workspace.state_dir / f"resume_{session.session_id}.md"
        short = shortened(text, self._workspace.shown(path))
        if short is text:
            return text
        try:
            await to_thread.run_sync(lambda: write_durably(path, text.encode(), inside=self._workspace.root))
        except OSError as error:
            return shortened(text, f"no file, for it could not be written ({error.strerror})")
        return short

    async def _news(self, call: ToolCall, session: Session, begun_step: str | None) -> list[str]:
        if not session.is_active:
            over = [f"The workflow is over: {session.status}."] if begun_step else []
            return over + back_to(await self._sessions.top(call))
        if begun_step != session.current_step_id:
            return [f"This step was completed before; the current step is {session.current_step_id!r}."]
        return await to_thread.run_sync(self._edited, session)

    def _edited(self, session: Session) -> list[str]:
        """Say that the job file is no longer what the session runs on."""
        job = self._catalogue.find(session.job_name)
        workflows = job.definition.workflows if isinstance(job, Job) else []
        now = [
            pin(job, flow).digest for flow in workflows if isinstance(job, Job) and flow.name == session.workflow_name
        ]
        if now == [session.pinned.digest]:
            return []
        return ["The job's definition has changed since this session started; it goes on as it began."]
