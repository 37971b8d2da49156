"""What the four tools do. One method a tool, read from top to bottom."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from deepwork.engine.active import ActiveSessions
from deepwork.engine.choice import chosen_names
from deepwork.engine.listing import JobListing
from deepwork.engine.outputs import check_outputs, unread_inputs
from deepwork.engine.people import PersonReviews
from deepwork.engine.replies import Replies, ReplyContext, begin_step
from deepwork.engine.reports import (
    Reading,
    Report,
    Submission,
    check_arguments,
    recorded_step,
    require_texts,
    session_over,
    work_of,
)
from deepwork.engine.resume import resume_text
from deepwork.engine.reviews import Review, Reviews
from deepwork.engine.strict import OverrideWaits, StrictRules
from deepwork.engine.traces import describe_call
from deepwork.errors import RunnerUnavailable, StateError, ToolError
from deepwork.gate.decision import Decision
from deepwork.gate.gate import QualityGate
from deepwork.gate.snapshot import Snapshot
from deepwork.jobs.catalogue import Catalogue
from deepwork.jobs.lookup import choose_job, choose_workflow
from deepwork.models.history import Waiting
from deepwork.models.replies import AbortedWorkflow, ActiveSession, FinishedStep, StartedWorkflow, WorkflowList
from deepwork.models.sessions import MAX_PARENTS, GitPlace, PinnedDefinition, Session, SessionStatus, StepProgress
from deepwork.ports.call import ToolCall
from deepwork.programs.git_head import read_head
from deepwork.sessions import transitions
from deepwork.sessions.definition import Definitions, read_instructions, upgraded
from deepwork.sessions.manager import StateManager, Target
from deepwork.sessions.standing import is_open, permitted_override
from deepwork.sessions.transitions import Beginning, Completion

WHERE = "?"

GATE_OFF = "The quality gate is off: the reviews of this step were not made. Tell the user."

BLANK_REASON = "quality_review_override_reason is blank, so it does not count."

ResultT = TypeVar("ResultT")


class Engine:
    """Leads agents through workflows. The one object that tools hold."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        sessions: StateManager,
        gate: QualityGate | None,
        is_strict: bool = False,
        agent: str | None = None,
        people: PersonReviews | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.sessions = sessions
        self.gate = gate
        self._people = people or PersonReviews(sessions)
        self.pages = self._people.pages
        self.strict = StrictRules(gate, self.pages, is_strict=is_strict)
        self._is_strict = is_strict
        self._agent = agent
        self._workspace = sessions.workspace
        self._active = ActiveSessions(sessions)
        self._listing = JobListing(catalogue)
        self._definitions = Definitions()
        self._replies = Replies(sessions, self._definitions)
        self._reviews = Reviews()

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
        names = {"job_name": job_name, "workflow_name": workflow_name, "instance_id": instance_id}
        check_arguments(texts={"goal": goal}, names={**names, "parent_session_id": parent_session_id})
        require_texts(goal=goal)
        nesting = await self._nesting(call, await self._parent(call, parent_session_id))
        await self.strict.check_start()
        job_name, workflow_name = await chosen_names(call, self.catalogue, job_name, workflow_name)
        prepare = partial(self._prepare, call.principal, goal, job_name, workflow_name, instance_id)
        beginning, notices = await to_thread.run_sync(prepare)
        self._check_reviewers(job_name, beginning.definition)
        beginning = replace(beginning, parents=nesting)
        new = transitions.new_session(uuid.uuid4().hex, beginning, now=self.sessions.now())
        session = await self.sessions.create(call, new)
        describe_call(session, session.current_step_id)
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
        check_arguments(
            texts={"notes": report.notes, "quality_review_override_reason": report.override},
            names={"session_id": report.session_id, "step_id": report.step_id},
        )
        outputs_alone = None if report.step_id else report.outputs
        async with Snapshot() as copied:
            read = partial(self._read, report, copied)
            target = await self._target(call, report.session_id, read, outputs=outputs_alone)
            reading = target.result
            session = reading.session
            if report.step_id == WHERE:
                return await self._replies.whereabouts(call, session)
            describe_call(session, session.current_step_id)
            try:
                checked = reading.checked()
                if isinstance(checked, StepProgress):
                    context = ReplyContext(call, session, reading.changes, target.view)
                    return await self._replies.of_step(context, checked)
                session, decision = await self._judged_and_completed(call, session, checked, copied)
                if decision and decision.waits_for:
                    step, is_new = checked.completion.step_id, copied.is_handed_over
                    decision = await self.pages.placed(call, session, step, decision, is_new=is_new)
                describe_call(session, checked.completion.step_id)
                # A review may have taken minutes: the sessions of the stack are read again after it.
                context = ReplyContext(call, session, reading.changes, None if decision else target.view)
                return await self._replies.of_decision(context, checked.completion, decision)
            except ToolError as error:
                step_id = report.step_id
                raise await self._replies.refusal(call, session, error, report.outputs, step_id=step_id) from error

    async def abort(self, call: ToolCall, *, explanation: str, session_id: str | None = None) -> AbortedWorkflow:
        """End a workflow before its end, and return to the one below it.

        Raises:
            StateError: There is no such session, or it is over.
        """
        check_arguments(texts={"explanation": explanation}, names={"session_id": session_id})
        require_texts(explanation=explanation)
        target = await self._target(call, session_id, lambda _session: None)
        session = target.session
        describe_call(session, session.current_step_id)
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
            return transitions.abort(current, reply, now=self.sessions.now())

        session = await self.sessions.update(session, abort)
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

        def text() -> str:
            job = self.catalogue.find(session.job_name)
            ready = upgraded(session, job, self.catalogue, self._workspace.root)
            return resume_text(ready, self._workspace)

        return await self.sessions.blocking(text)

    async def wait(self, session_id: str, waiting: Waiting) -> Session:
        """Record durably that the agent or runner of a session has to wait.

        Raises:
            StateError: The session has gone, or could not be saved.
        """

        def changed(current: Session) -> Session:
            return transitions.record(current, self.sessions.now(), waiting) if current.is_active else current

        return await self.sessions.update(await self.sessions.reload(session_id), changed)

    # The road of a reported step

    def _read(self, report: Report, copied: Snapshot, session: Session) -> Reading:
        """Do all that blocks before a report is judged; this runs in a thread."""
        job = self.catalogue.find(session.job_name)
        session = upgraded(session, job, self.catalogue, self._workspace.root)
        changes = self._replies.edited(session, job)
        if report.step_id == WHERE:
            return Reading(session, changes)
        try:
            step = recorded_step(session, report.step_id, report.outputs)
            return Reading(session, changes, step or self._check(session, report, copied))
        except ToolError as error:
            return Reading(session, changes, error)

    def _check(self, session: Session, report: Report, copied: Snapshot) -> Submission:
        """Check everything, copy what is to be judged, and read what the next step needs: all before any effect."""
        transitions.check_not_paused(session)
        definition = session.pinned
        step = definition.steps[report.step_id or session.current_step_id]
        owner = f"step {step.id!r} of {session.workflow}, session {session.session_id!r}"
        override = permitted_override(session, step.id) or report.stated_override
        reviewers = self.gate.reviewers(session.job_name, step) if self.gate and not override else {}
        is_copied = any(reviewer.spec.gives_verdicts for several in reviewers.values() for reviewer in several)
        checked = check_outputs(
            report.outputs, step.outputs, self._workspace, owner=owner, copied=copied if is_copied else None
        )
        work = work_of(session, step, checked.outputs, report.notes, reviewers)
        inputs = [path for path, _ in work.inputs] if reviewers else []
        for path in inputs if is_copied else ():
            copied.add(path, self._workspace.output_roots)
        notices = [*checked.notices, *unread_inputs(inputs, self._workspace, copied)]
        if report.override and not override and step.reviews:
            notices.append(BLANK_REASON)
        gate_off = self.gate is None and bool(step.reviews)
        if gate_off:
            notices.append(GATE_OFF)
        following = session.next_entry if step.id == session.current_step_id else []
        instructions = read_instructions(definition, following, self._workspace.root, owner=owner)
        completion = Completion(
            step_id=step.id,
            outputs=checked.outputs,
            reported=dict(report.outputs) if checked.outputs != report.outputs else None,
            notes=report.notes,
            override=override,
            gate_off=gate_off,
            notices=tuple(notices),
            next_instructions=instructions,
            digests=checked.digests,
            git=_git_place(self._workspace.root),
            agent=self._agent,
        )
        # A strict session stays strict wherever it goes on.
        return Submission(completion, work, is_strict=self._is_strict or session.strict)

    async def _judged_and_completed(
        self, call: ToolCall, session: Session, submission: Submission, copied: Snapshot
    ) -> tuple[Session, Decision | None]:
        """Have the step judged if it is to be, and complete it unless the judgement says otherwise."""
        completion, work, people = submission.completion, submission.work, self._people
        if submission.is_strict:
            completion = await self._admitted(call, session, completion)
            submission = replace(submission, completion=completion)
        if completion.override and self.gate and session.pinned.steps[completion.step_id].reviews:
            async with self._reviews.replaced(session.session_id, completion.step_id):
                return await self._completed(session, completion), None
        if self.gate is None or not work.reviewers:
            return await self._completed(session, completion), None
        review = Review(self.gate, people, self.sessions, session, submission)
        if not work.gives_verdicts:
            return await review.without_verdicts(copied)
        submitted = await people.read(session, work, copied)
        if submitted and submitted.decision:
            return await people.told(session, submitted, submitted.decision)
        session, decision = await self._reviews.share(review, work.key(copied.originals), call, copied)
        await people.prune()
        return await people.told(session, submitted, decision) if submitted and decision else (session, decision)

    async def _admitted(self, call: ToolCall, session: Session, completion: Completion) -> Completion:
        """Check a report by the rules of a strict gate, and note in the session when only a person can allow it."""
        try:
            return await self.strict.admitted(call, session, completion)
        except OverrideWaits as waits:
            answer = waits.answer

            def ask(current: Session) -> tuple[Session, bool]:
                asked = transitions.ask_override(current, completion, answer, now=self.sessions.now())
                return asked, asked is not current

            _, is_new = await self.sessions.update_upgraded(session, ask)
            if is_new and call.show and waits.address:
                await call.show(waits.question, waits.address)
            raise

    async def _completed(self, session: Session, completion: Completion) -> Session:
        """Complete a step without a judgement."""

        def complete(current: Session) -> tuple[Session, None]:
            if not is_open(current, completion.step_id) and recorded_step(
                current, completion.step_id, completion.outputs
            ):
                return current, None
            return transitions.complete(current, completion, now=self.sessions.now()), None

        session, _ = await self.sessions.update_upgraded(session, complete)
        return session

    # Which job and which session a call means

    def _check_reviewers(self, job_name: str, definition: PinnedDefinition) -> None:
        """Refuse a workflow whose reviews could never be held.

        Raises:
            RunnerUnavailable: A reviewer of its steps is not installed, or is left out.
        """
        error = self.gate.missing_reviewer(job_name, definition.steps.values()) if self.gate else None
        if error:
            raise RunnerUnavailable(
                f"the steps of this workflow have reviews, and {error.message}; no session was made", hint=error.hint
            )

    def _prepare(
        self, principal: str, goal: str, job_name: str, workflow_name: str, instance_id: str | None
    ) -> tuple[Beginning, list[str]]:
        """Read all that a new session needs, and what the agent should know of it; this runs in a thread."""
        job = choose_job(self.catalogue, job_name)
        workflow, notices = choose_workflow(job, workflow_name)
        definition = self._definitions.of(job, workflow)
        beginning = Beginning(
            job_name=job_name,
            goal=goal,
            definition=definition,
            instructions=read_instructions(definition, workflow.entries[0], self._workspace.root),
            principal=principal,
            instance_id=instance_id,
            git=_git_place(self._workspace.root),
            strict=self._is_strict,
        )
        return beginning, notices

    async def _target(
        self,
        call: ToolCall,
        session_id: str | None,
        then: Callable[[Session], ResultT],
        *,
        outputs: Mapping[str, Any] | None = None,
    ) -> Target[ResultT]:
        """Find the target session. On failure the error lists sessions to resume."""
        try:
            target = await self.sessions.target(call, session_id, then)
        except ToolError as error:
            raise await self._replies.no_session(call, error, outputs) from None
        self.sessions.note_call(call, target.session)
        return target

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

    async def _nesting(self, call: ToolCall, parent: Session | None) -> list[str]:
        """Return the ids of the open sessions in which a new one nests, the outermost first.

        Sessions above the parent that are over are left out: the list of an agent that always starts the next workflow
        before it ends the last would grow for ever.

        Raises:
            StateError: A person has paused one of them, however deep it is, or they are too many to be stored.
        """
        if parent is None:
            return []
        transitions.check_not_paused(parent)
        nesting = []
        for parent_id in parent.parents:
            session = await self.sessions.find(call, parent_id)
            if session and session.is_active:
                transitions.check_not_paused(session)
                nesting.append(parent_id)
        if len(nesting) >= MAX_PARENTS:
            raise StateError(
                f"{MAX_PARENTS:,} workflows are open inside of each other already; nothing was started",
                hint="Finish or abort some of them first.",
            )
        return [*nesting, parent.session_id]


def _git_place(root: Path) -> GitPlace | None:
    """Return branch and commit of the project; None if it is in no repository."""
    head = read_head(root)
    return GitPlace(branch=head.branch, commit=head.commit) if head else None
