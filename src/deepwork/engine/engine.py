"""What the four tools do. One method a tool, read from top to bottom."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from deepwork.engine import progress
from deepwork.engine.answers import Answers, ended, recorded_step
from deepwork.engine.arguments import check_names, check_texts
from deepwork.engine.begin import begin_step, pin, read_entry
from deepwork.engine.choose import choose_job, choose_workflow
from deepwork.engine.gate import Case, QualityGate
from deepwork.engine.outputs import check_outputs
from deepwork.engine.reviewing import Reviewed, Reviewing
from deepwork.engine.ruling import Kind
from deepwork.engine.sessions import StateManager
from deepwork.engine.upgrade import upgraded
from deepwork.errors import StaleSession, ToolError
from deepwork.jobs.catalogue import Catalogue
from deepwork.models.jobs import Job, Step
from deepwork.models.replies import (
    AbortedWorkflow,
    FinishedStep,
    JobErrorInfo,
    JobInfo,
    Outputs,
    StartedWorkflow,
    StepStatus,
    WorkflowInfo,
    WorkflowList,
)
from deepwork.models.sessions import BegunStep, PinnedDefinition, Session, SessionStatus
from deepwork.ports.call import ToolCall
from deepwork.workspace import Workspace

# Each lost race means that somebody else got through, so a call that loses this often is stuck elsewhere.
MAX_RACES = 20

HOW_TO_REPORT = (
    "Report with finished_step(session_id, step_id, outputs). With both ids a repeated call is answered as before "
    "and never counts twice."
)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Engine:
    """Leads agents through workflows. The one object that tools hold."""

    def __init__(
        self,
        *,
        workspace: Workspace,
        catalogue: Catalogue,
        sessions: StateManager,
        gate: QualityGate | None,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.catalogue = catalogue
        self.sessions = sessions
        self.gate = gate
        self._workspace = workspace
        self._clock = clock
        self._answers = Answers(workspace, sessions, catalogue, clock)
        self._infos: dict[Path, tuple[Job, JobInfo]] = {}
        self._reviewing = Reviewing(gate, sessions, self._now) if gate else None

    async def close(self) -> None:
        """End what is under way, and close the store; the next call opens it again."""
        with anyio.CancelScope(shield=True):
            if self._reviewing:
                await self._reviewing.close()
            await self.sessions.close()

    def list_workflows(self) -> WorkflowList:
        """List all jobs; sync, because JOBS-REQ-001.2.1 wants the tool so."""
        listing = self.catalogue.list()
        return WorkflowList(
            jobs=[self._info(job) for _, job in listing.jobs],
            errors=[
                JobErrorInfo(
                    job_name=_encodable(error.job_name),
                    job_dir=_encodable(str(error.job_dir)),
                    error=_encodable(f"{error.message}\nCorrect the file; get_workflows reads it again at once."),
                )
                for _, error in listing.errors
            ],
        )

    def _info(self, job: Job) -> JobInfo:
        """Show a job; one whose file has not changed is the same object, and is shown as before."""
        known, info = self._infos.get(job.job_dir, (None, None))
        if info is None or known is not job:
            workflows = [WorkflowInfo(name=flow.name, summary=flow.summary) for flow in job.definition.workflows]
            summary, description = job.definition.summary, job.description
            info = JobInfo(name=job.name, summary=summary, description=description, workflows=workflows)
            self._infos[job.job_dir] = job, info
        return info

    async def start(
        self,
        call: ToolCall,
        *,
        goal: str,
        job_name: str,
        workflow_name: str,
        instance_id: str | None = None,
        parent_session_id: str | None = None,
    ) -> StartedWorkflow:
        """Start a workflow on top of the stack.

        Raises:
            ToolError: The job, the workflow, the parent or an instruction file is missing; no session was made.
        """
        check_texts(goal=goal)
        check_names(job_name=job_name, workflow_name=workflow_name, instance_id=instance_id)
        check_names(parent_session_id=parent_session_id)
        definition, begun, notices = await to_thread.run_sync(self._prepare, job_name, workflow_name)
        parent = await self._parent(call, parent_session_id)
        session = progress.new_session(
            uuid.uuid4().hex,
            definition,
            begun,
            job_name=job_name,
            goal=goal,
            instance_id=instance_id,
            principal=call.principal,
            parents=[*parent.parents, parent.session_id] if parent else [],
            now=self._now(),
        )
        session = await self.sessions.create(call, session)
        return StartedWorkflow(
            begin_step=begin_step(session, session.current_step_id),
            stack=await self.sessions.stack_entries(call, session),
            notices=[*notices, HOW_TO_REPORT, *self.sessions.remarks(call)],
        )

    async def finish_step(
        self,
        call: ToolCall,
        *,
        outputs: Mapping[str, Any],
        notes: str | None = None,
        quality_review_override_reason: str | None = None,
        session_id: str | None = None,
        step_id: str | None = None,
    ) -> FinishedStep:
        """Complete a step, or say what it still needs.

        Raises:
            ToolError: The call cannot be carried out; nothing was changed.
        """
        override = (quality_review_override_reason or "").strip() or None
        check_texts(notes=notes, quality_review_override_reason=quality_review_override_reason)
        check_names(session_id=session_id, step_id=step_id)
        session = await self._target(call, session_id, reported=None if step_id else outputs)
        session = await self._upgraded(session)
        named = step_id
        for _ in range(MAX_RACES):
            try:
                if done := recorded_step(session, step_id, outputs):
                    return await self._answers.of_step(call, session, done)
                step_id = step_id or session.current_step_id
                return await self._finish(call, session, step_id, outputs, notes=notes, override=override)
            except StaleSession:
                # Somebody else was faster. What was meant stays meant: the answer is in what they left.
                session = await self._upgraded(await self.sessions.reload(session.session_id))
            except ToolError as error:
                raise await self._answers.rejected(call, session, error, outputs, named=named) from error
        raise StaleSession(f"Session {session.session_id!r} is being changed all the time; call again")

    async def abort(self, call: ToolCall, *, explanation: str, session_id: str | None = None) -> AbortedWorkflow:
        """End a workflow before its end, and return to the one below it.

        Raises:
            StateError: There is no such session, or it is over.
        """
        check_texts(explanation=explanation)
        check_names(session_id=session_id)
        session = await self._target(call, session_id)
        for _ in range(MAX_RACES):
            if session.status is SessionStatus.ABORTED and session.abort_reply:
                return session.abort_reply.model_copy(update={"stack": await self.sessions.stack_entries(call)})
            if not session.is_active:
                raise ended(session)
            try:
                return await self._abort(call, session, explanation)
            except StaleSession:
                session = await self.sessions.reload(session.session_id)
        raise StaleSession(f"Session {session.session_id!r} is being changed all the time; call again")

    async def resume_text(self, call: ToolCall, session_id: str) -> str:
        """Tell what an agent needs that has to go on with a session and remembers nothing.

        Raises:
            StateError: There is no such session.
        """
        session = await self.sessions.named(call, session_id)
        if not session.is_active:
            return str(ended(session))
        return await self._answers.resume_text(await self._upgraded(session))

    def _prepare(self, job_name: str, workflow_name: str) -> tuple[PinnedDefinition, list[BegunStep], list[str]]:
        job = choose_job(self.catalogue, job_name)
        workflow, notices = choose_workflow(job, workflow_name)
        definition = pin(job, workflow)
        return definition, read_entry(definition, workflow.entries[0], {}, self._workspace.root), notices

    async def _upgraded(self, session: Session) -> Session:
        if session.definition or not session.is_active:
            return session
        return await to_thread.run_sync(upgraded, session, self.catalogue, self._workspace.root)

    async def _target(
        self, call: ToolCall, session_id: str | None, *, reported: Mapping[str, Any] | None = None
    ) -> Session:
        """Find the session that a call means; the error of a wrong one names those that can be resumed."""
        try:
            return await self.sessions.target(call, session_id)
        except ToolError as error:
            raise await self._answers.no_session(call, error, reported) from None

    async def _parent(self, call: ToolCall, session_id: str | None) -> Session | None:
        """Find the session under which a new one nests; it goes on the stack together with that."""
        if not session_id:
            return await self.sessions.top(call)
        try:
            parent = await self.sessions.named(call, session_id)
        except ToolError as error:
            raise await self._answers.no_session(call, error, None) from None
        if not parent.is_active:
            raise ended(parent)
        return parent

    async def _finish(
        self,
        call: ToolCall,
        session: Session,
        step_id: str,
        outputs: Mapping[str, Any],
        *,
        notes: str | None,
        override: str | None,
    ) -> FinishedStep:
        """Check everything, have it judged, then save once."""
        step = session.pinned.steps[step_id]
        is_primary = step_id == session.current_step_id

        def check() -> tuple[Outputs, list[BegunStep]]:
            checked = check_outputs(outputs, step.outputs, self._workspace.output_roots)
            return checked, self._read_next(session, checked) if is_primary else []

        checked, begun = await to_thread.run_sync(check)

        async def complete(current: Session) -> Session:
            """Complete the step, in a session that others may have changed since `begun` was read."""
            is_new = current.revision != session.revision and is_primary
            following = await to_thread.run_sync(self._read_next, current, checked) if is_new else begun
            now = self._now()
            if is_primary:
                return progress.complete_entry(current, checked, following, notes=notes, override=override, now=now)
            return progress.complete_member(current, step_id, checked, notes=notes, override=override, now=now)

        if self._reviewing and step.reviews and not override:
            case = _case(session, step, checked, notes)
            reviewed = await self._reviewing.review(call, session, case, complete)
            return await self._after_review(call, reviewed, step_id, outputs)
        if self._reviewing and step.reviews:
            async with self._reviewing.replaced(session, step_id) as any_ended:
                current = await self.sessions.reload(session.session_id) if any_ended else session
                saved = await self.sessions.save(await complete(current))
        else:
            saved = await self.sessions.save(await complete(session))
        return await self._answers.of_step(call, saved, saved.step_progress[step_id])

    async def _after_review(
        self, call: ToolCall, reviewed: Reviewed, step_id: str, outputs: Mapping[str, Any]
    ) -> FinishedStep:
        session, ruling = reviewed.session, reviewed.ruling
        if ruling and ruling.error:
            raise ruling.error
        if ruling and ruling.kind is not Kind.PASSED:
            return FinishedStep(
                status=StepStatus.NEEDS_WORK,
                feedback=ruling.feedback,
                failed_reviews=list(ruling.failed_reviews) or None,
                stack=await self.sessions.stack_entries(call, session),
                notices=[*ruling.notices, *self.sessions.remarks(call)],
            )
        done = recorded_step(session, step_id, outputs)
        if done is None:
            raise StaleSession("The step was begun anew while it was reviewed; call again")
        reply = await self._answers.of_step(call, session, done)
        return reply.model_copy(update={"notices": [*(ruling.notices if ruling else ()), *reply.notices]})

    async def _abort(self, call: ToolCall, session: Session, explanation: str) -> AbortedWorkflow:
        remaining = [other for other in await self.sessions.stack(call) if other.session_id != session.session_id]
        resumed = remaining[-1] if remaining else None
        reply = progress.aborted_reply(session, explanation, resumed)
        await self.sessions.save(progress.abort(session, reply, now=self._now()))
        self.sessions.remove(call, session.session_id)
        return reply.model_copy(
            update={
                "stack": await self.sessions.stack_entries(call),
                "notices": [*reply.notices, *self.sessions.remarks(call)],
            }
        )

    def _read_next(self, session: Session, outputs: Outputs) -> list[BegunStep]:
        by_step = {**progress.outputs_by_step(session), session.current_step_id: outputs}
        return read_entry(session.pinned, progress.next_entry(session), by_step, self._workspace.root)

    def _now(self) -> str:
        return self._clock().isoformat(timespec="microseconds")


def _case(session: Session, step: Step, outputs: Outputs, notes: str | None) -> Case:
    return Case(
        session_id=session.session_id,
        job_name=session.job_name,
        workflow_name=session.workflow_name,
        step=step,
        outputs=outputs,
        outputs_by_step=progress.outputs_by_step(session),
        notes=notes,
    )


def _encodable(text: str) -> str:
    """Make text that JSON can carry of a file name that is no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()
