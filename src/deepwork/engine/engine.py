"""What the four tools do. One method a tool, read from top to bottom."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import lowlevel, to_thread

from deepwork.engine.active import ActiveSessions
from deepwork.engine.changes import git_place, output_digests
from deepwork.engine.choice import chosen_names
from deepwork.engine.limits import check_names, check_texts, require_texts
from deepwork.engine.listing import JobListing
from deepwork.engine.outputs import check_outputs
from deepwork.engine.replies import AsRead, Replies, recorded_step, session_over
from deepwork.engine.reports import Reading, Report
from deepwork.engine.steps import begin_step
from deepwork.engine.strict import OverrideWaits, StrictRules
from deepwork.errors import StateError, StorageError, ToolError
from deepwork.files.process_end import PendingRecord
from deepwork.files.workspace import Workspace
from deepwork.gate.decision import Decision, DecisionKind, decide
from deepwork.gate.fingerprints import digest_of, digests
from deepwork.gate.gate import Judgement, QualityGate
from deepwork.gate.history import judgement_events
from deepwork.gate.progress import ReviewProgress
from deepwork.gate.recorded import RecordedVerdicts
from deepwork.gate.shared import SharedReviews
from deepwork.gate.work import Work
from deepwork.jobs.catalogue import Catalogue
from deepwork.jobs.lookup import choose_job, choose_workflow
from deepwork.models.replies import AbortedWorkflow, ActiveSession, FinishedStep, StartedWorkflow, WorkflowList
from deepwork.models.sessions import GitPlace, PinnedDefinition, Session, SessionStatus
from deepwork.ports.call import ToolCall
from deepwork.sessions import transitions
from deepwork.sessions.definition import Definitions, read_instructions
from deepwork.sessions.manager import StateManager, Target
from deepwork.sessions.standing import is_open, permitted_override, recent_entries
from deepwork.sessions.transitions import Completion, Limits
from deepwork.sessions.upgrade import pinned_as, upgraded

WHERE = "?"

GATE_OFF = "The quality gate is off: the reviews of this step were not made. Tell the user."

BLANK_REASON = "quality_review_override_reason is blank, so it does not count."

ResultT = TypeVar("ResultT")


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
        is_strict: bool = False,
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.catalogue = catalogue
        self.sessions = sessions
        self.gate = gate
        self.strict = StrictRules(gate, is_strict=is_strict)
        self._is_strict = is_strict
        self._workspace = workspace
        self._clock = clock
        self._active = ActiveSessions(sessions)
        self._listing = JobListing(catalogue)
        self._definitions = Definitions()
        self._replies = Replies(workspace, sessions, catalogue, self._definitions, clock)
        self._reviews: SharedReviews[tuple[Session, Decision | None]] = SharedReviews()

    async def close(self) -> None:
        """End the reviews that run, and close the store; the next call opens it again."""
        with anyio.CancelScope(shield=True):
            await self._reviews.close()
            await self.sessions.close()

    def list_workflows(self, call: ToolCall) -> WorkflowList:
        """List all jobs, and what the caller may go on with; sync, because JOBS-REQ-001.2.1 wants the tool so."""
        return self._listing.reply(*self._active.list_from_thread(call))

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
        require_texts(goal=goal)
        check_names(job_name=job_name, workflow_name=workflow_name, instance_id=instance_id)
        check_names(parent_session_id=parent_session_id)
        await self.strict.check_start()
        job_name, workflow_name = await chosen_names(call, self.catalogue, job_name, workflow_name)
        definition, instructions, git, notices = await to_thread.run_sync(self._prepare, job_name, workflow_name)
        parent = await self._parent(call, parent_session_id)
        session = transitions.new_session(
            uuid.uuid4().hex,
            definition,
            instructions,
            job_name=job_name,
            goal=goal,
            instance_id=instance_id,
            principal=call.principal,
            parents=[*parent.parents, parent.session_id] if parent else [],
            git=git,
            strict=self._is_strict,
            now=self._now(),
        )
        session = await self.sessions.create(call, session)
        stack = await self.sessions.stack_entries(call, session)
        # Only once this session is saved: of two that start at the same time, each then finds the other.
        others = await self._active.others_of(call, session)
        return StartedWorkflow(
            begin_step=begin_step(session, session.current_step_id),
            stack=stack,
            notices=[*notices, *others, *self.sessions.connection(call).take_remarks()],
        )

    async def finish_step(self, call: ToolCall, report: Report) -> FinishedStep:
        """Complete a step, or say what it still needs.

        Raises:
            ToolError: The call cannot be carried out; nothing was changed.
        """
        check_texts(notes=report.notes, quality_review_override_reason=report.override)
        check_names(session_id=report.session_id, step_id=report.step_id)
        outputs_alone = None if report.step_id else report.outputs
        target = await self._target(call, report.session_id, partial(self._read, report), outputs=outputs_alone)
        reading = target.result
        session = reading.session
        if report.step_id == WHERE:
            return await self._replies.whereabouts(call, session)
        try:
            if step := recorded_step(session, report.step_id, report.outputs):
                return await self._replies.of_step(call, session, step, AsRead(target.view, reading.changes))
            completion = reading.completion()
            session, decision = await self._judged_and_completed(call, session, completion)
            # After a review, which may have taken minutes, everything is read again.
            as_read = AsRead(target.view, reading.changes) if decision is None else None
            return await self._replies.of_decision(call, session, completion, decision, as_read)
        except ToolError as error:
            raise await self._replies.refusal(call, session, error, report.outputs, step_id=report.step_id) from error

    async def abort(self, call: ToolCall, *, explanation: str, session_id: str | None = None) -> AbortedWorkflow:
        """End a workflow before its end, and return to the one below it.

        Raises:
            StateError: There is no such session, or it is over.
        """
        check_texts(explanation=explanation)
        require_texts(explanation=explanation)
        check_names(session_id=session_id)
        target = await self._target(call, session_id, lambda _session: None)
        session = target.session
        stack = await self.sessions.stack(call, session, target.view)
        remaining = [summary for summary in stack if summary.session_id != session.session_id]
        resumed = remaining[-1] if remaining else None
        repeated = session.status is SessionStatus.ABORTED

        def abort(current: Session) -> Session:
            if current.status is SessionStatus.ABORTED and current.abort_reply:
                return current
            if not current.is_active:
                raise session_over(current)
            reply = transitions.recorded_abort(current, explanation, resumed)
            return transitions.abort(current, reply, now=self._now())

        session = await self.sessions.update(session.session_id, abort, session=session)
        self.sessions.connection(call).end(session.session_id)
        return await self._replies.of_abort(call, session, repeated=repeated)

    async def active_sessions(self, call: ToolCall) -> list[ActiveSession]:
        """List what the caller may go on with, the last changed first; nothing if the store is slow or fails."""
        return await self._active.infos(call)

    async def resume_text(self, call: ToolCall, session_id: str) -> str:
        """Tell what an agent needs that has to go on with a session and remembers nothing.

        Raises:
            StateError: There is no such session.
        """
        session = await self.sessions.named(call, session_id)
        if not session.is_active:
            return str(session_over(session))
        return await self._replies.resume_text(await self.sessions.blocking(lambda: self._upgrade(session)))

    # The road of a reported step

    def _read(self, report: Report, session: Session) -> Reading:
        """Do all that blocks before a report is judged; this runs in a thread."""
        session = self._upgrade(session)
        changes = self._replies.edited(session)
        try:
            is_open = report.step_id != WHERE and not recorded_step(session, report.step_id, report.outputs)
            step_id = report.step_id or session.current_step_id
            return Reading(session, changes, self._check(session, step_id, report) if is_open else None)
        except ToolError as error:
            return Reading(session, changes, error)

    def _check(self, session: Session, step_id: str, report: Report) -> Completion:
        """Check everything, and read what the next step needs, before anything is changed or paid for."""
        owner = f"step {step_id!r} of {session.workflow}, session {session.session_id!r}"
        declared = session.pinned.steps[step_id].outputs
        checked = check_outputs(report.outputs, declared, self._workspace, owner=owner)
        notices = [*checked.notices]
        override = report.stated_override
        if report.override and not override and session.pinned.steps[step_id].reviews:
            notices.append(BLANK_REASON)
        instructions = {}
        if step_id == session.current_step_id:
            following = transitions.next_entry(session)
            instructions = read_instructions(session.pinned, following, self._workspace.root, owner=owner)
        gate_off = self.gate is None and bool(session.pinned.steps[step_id].reviews)
        if gate_off:
            notices.append(GATE_OFF)
        return Completion(
            step_id=step_id,
            outputs=checked.outputs,
            reported=dict(report.outputs) if checked.outputs != report.outputs else None,
            notes=report.notes,
            override=override,
            gate_off=gate_off,
            notices=tuple(notices),
            next_instructions=instructions,
            digests=output_digests(checked.outputs, self._workspace),
            git=git_place(self._workspace),
        )

    async def _judged_and_completed(
        self, call: ToolCall, session: Session, completion: Completion
    ) -> tuple[Session, Decision | None]:
        """Have the step judged if it is to be, and complete it unless the judgement says otherwise."""
        step = session.pinned.steps[completion.step_id]
        if self.strict.apply_to(session):
            completion = await self._admitted(call, session, completion)
        if reason := permitted_override(session, step.id):
            completion = replace(completion, override=reason)
        if self.gate is None or not step.reviews:
            return await self._completed(session, completion), None
        if completion.override:
            async with self._reviews.replaced((session.session_id, step.id)):
                return await self._completed(session, completion), None
        work = _work(session, completion)
        if not self.gate.gives_verdicts(work):
            judgement = await self.gate.judge(work)
            return await self._concluded(self.gate, session, completion, judgement, attempted=False)
        return await self._reviewed(call, self.gate, session, completion, work)

    async def _admitted(self, call: ToolCall, session: Session, completion: Completion) -> Completion:
        """Check a report by the rules of a strict gate, and note in the session when only a person can allow it."""
        try:
            return await self.strict.admitted(call, session, completion)
        except OverrideWaits as waits:
            reason, answer = completion.override or "", waits.answer

            def ask(current: Session) -> tuple[Session, None]:
                return transitions.ask_override(current, completion.step_id, reason, answer, now=self._now()), None

            await self._update(session, ask)
            raise

    async def _completed(self, session: Session, completion: Completion) -> Session:
        """Complete a step without a judgement."""

        def complete(current: Session) -> tuple[Session, None]:
            if recorded_step(current, completion.step_id, completion.outputs):
                return current, None
            return transitions.complete(current, completion, now=self._now()), None

        session, _ = await self._update(session, complete)
        return session

    async def _reviewed(
        self, call: ToolCall, gate: QualityGate, session: Session, completion: Completion, work: Work
    ) -> tuple[Session, Decision | None]:
        """Share one review among equal calls, and tell each of them how far it is."""

        async def report(progress: ReviewProgress) -> None:
            if progress.total:
                await call.progress(progress.value, progress.total, progress.text)

        async def review(progress: ReviewProgress) -> tuple[Session, Decision | None]:
            return await self._review(gate, session, completion, work, progress)

        content = digest_of(sorted(work.outputs.items()), digests(await gate.read(work), work.files))
        result = await self._reviews.run((session.session_id, completion.step_id), content, review, report)
        if result is None:  # another call has overridden the review
            return await self.sessions.reload(session.session_id), None
        return result

    async def _review(
        self, gate: QualityGate, session: Session, completion: Completion, work: Work, progress: ReviewProgress
    ) -> tuple[Session, Decision | None]:
        """Count the attempt, have the work judged, and save what follows. No lock is held meanwhile."""
        with PendingRecord() as record:
            with anyio.CancelScope(shield=True):
                session, is_open = await self._attempted(gate, session, completion.step_id)
            if not is_open:
                return session, None
            verdicts = RecordedVerdicts.of(recent_entries(session), completion.step_id)
            judgement = await self._judgement(gate, session, work, verdicts, progress, record)
            # What was paid for is written down, even when the last caller goes at this moment.
            with anyio.CancelScope(shield=True):
                concluded = await self._concluded(gate, session, completion, judgement, attempted=True)
            return concluded  # noqa: RET504 - not from inside: for mypy a scope may swallow an exception

    async def _judgement(
        self,
        gate: QualityGate,
        session: Session,
        work: Work,
        verdicts: RecordedVerdicts,
        progress: ReviewProgress,
        record: PendingRecord,
    ) -> Judgement:
        """Have the work judged; if nothing comes of it, return the attempt that was counted for it."""
        error: Exception | None = None
        async with anyio.create_task_group() as tasks:
            judged = anyio.Event()
            tasks.start_soon(self._return_attempt_if_cancelled, session, work.step.id, judged, record)
            try:
                judgement = await gate.judge(work, verdicts=verdicts, progress=progress)
            except Exception as raised:  # noqa: BLE001 - raised again below, outside of the group, which would wrap it
                error = raised
            judged.set()
        await lowlevel.checkpoint_if_cancelled()
        if error:
            with anyio.CancelScope(shield=True):
                await self._return_attempt(session, work.step.id, error)
            raise error
        return judgement

    async def _return_attempt_if_cancelled(
        self, session: Session, step_id: str, judged: anyio.Event, record: PendingRecord
    ) -> None:
        """Return an attempt at once when its review is cancelled; its processes may take longer to end."""
        try:
            await judged.wait()
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._return_attempt(session, step_id, error)
            record.done()
            raise

    async def _attempted(self, gate: QualityGate, session: Session, step_id: str) -> tuple[Session, bool]:
        """Count an attempt, unless the step was completed meanwhile; say whether it is open."""
        limits = Limits(gate.max_attempts, gate.max_failures, self.strict.apply_to(session))

        def attempt(current: Session) -> tuple[Session, bool]:
            if not is_open(current, step_id):
                return current, False
            return transitions.begin_attempt(current, step_id, limits, now=self._now()), True

        return await self._update(session, attempt)

    async def _return_attempt(self, session: Session, step_id: str, error: BaseException) -> None:
        """Take an attempt out of the count whose review was ended; whatever fails here must not hide why."""
        reason = str(error) if isinstance(error, StateError) else "the review was ended"

        def give_back(current: Session) -> tuple[Session, None]:
            if not is_open(current, step_id):
                return current, None
            return transitions.return_attempt(current, step_id, reason, now=self._now()), None

        try:
            await self._update(session, give_back)
        except StateError:
            return

    async def _concluded(
        self, gate: QualityGate, session: Session, completion: Completion, judgement: Judgement, *, attempted: bool
    ) -> tuple[Session, Decision | None]:
        """Save a judgement and what follows from it; no decision if the step was over by then."""
        try:
            return await self._update(
                session, lambda current: self._conclude(gate, current, completion, judgement, attempted=attempted)
            )
        except StorageError:
            await judgement.undo()
            raise

    def _conclude(
        self, gate: QualityGate, session: Session, completion: Completion, judgement: Judgement, *, attempted: bool
    ) -> tuple[Session, Decision | None]:
        """Record a judgement in the session, and complete the step if it passed. Pure but for the clock."""
        step_id, now = completion.step_id, self._now()
        progress = session.step_progress[step_id]
        if not is_open(session, step_id):
            return transitions.record_all(session, step_id, judgement_events(judgement), now=now), None
        failures = progress.runner_failures + 1
        decision = decide(
            judgement,
            attempts=progress.quality_attempts,
            max_attempts=gate.max_attempts,
            failures=failures,
            max_failures=gate.max_failures,
            is_strict=self.strict.apply_to(session),
        )
        events = judgement_events(judgement, asks_user=decision.asks_user)
        recorded = transitions.record_all(session, step_id, events, now=now)
        is_failure = decision.kind is DecisionKind.NO_VERDICT
        concluded = transitions.count_runner_failures(recorded, step_id, failures if is_failure else 0)
        if decision.kind is DecisionKind.HANDED_BACK:
            for hand_back in judgement.handed_back:
                concluded = transitions.hand_back(concluded, step_id, hand_back.verdict.feedback, now=now)
        if attempted and not decision.kind.counts:
            concluded = transitions.return_attempt(concluded, step_id, decision.kind, now=now)
        if decision.kind is DecisionKind.PASSED:
            concluded = transitions.complete(concluded, completion, now=now)
        return concluded, decision

    async def _update(
        self, session: Session, change: Callable[[Session], tuple[Session, ResultT]]
    ) -> tuple[Session, ResultT]:
        """Change a session that was read a moment ago; one of an earlier release is pinned as it was upgraded."""
        return await self.sessions.update_with(
            session.session_id, lambda current: change(pinned_as(current, session)), session=session
        )

    # Which job and which session a call means

    def _prepare(
        self, job_name: str, workflow_name: str
    ) -> tuple[PinnedDefinition, dict[str, str], GitPlace | None, list[str]]:
        job = choose_job(self.catalogue, job_name)
        workflow, notices = choose_workflow(job, workflow_name)
        definition = self._definitions.of(job, workflow)
        instructions = read_instructions(definition, workflow.entries[0], self._workspace.root)
        return definition, instructions, git_place(self._workspace), notices

    def _upgrade(self, session: Session) -> Session:
        if session.definition is None and not session.is_active:
            return session
        return upgraded(session, self.catalogue, self._workspace.root)

    async def _target(
        self,
        call: ToolCall,
        session_id: str | None,
        then: Callable[[Session], ResultT],
        *,
        outputs: Mapping[str, Any] | None = None,
    ) -> Target[ResultT]:
        """Find the session that a call means; the error of a wrong one names those that can be resumed."""
        try:
            return await self.sessions.target(call, session_id, then)
        except ToolError as error:
            raise await self._replies.no_session(call, error, outputs) from None

    async def _parent(self, call: ToolCall, session_id: str | None) -> Session | None:
        """Find the session under which a new one nests; it goes on the stack together with that."""
        if not session_id:
            return await self.sessions.top(call)
        try:
            parent = await self.sessions.named(call, session_id)
        except ToolError as error:
            raise await self._replies.no_session(call, error, None) from None
        if not parent.is_active:
            raise session_over(parent)
        return parent

    def _now(self) -> str:
        return self._clock().isoformat(timespec="microseconds")


def _work(session: Session, completion: Completion) -> Work:
    return Work(
        session_id=session.session_id,
        job_name=session.job_name,
        workflow_name=session.workflow_name,
        step=session.pinned.steps[completion.step_id],
        outputs=completion.outputs,
        outputs_by_step=transitions.outputs_by_step(session),
        notes=completion.notes,
    )
