"""Reviews of reported steps: one review from the counted attempt to the saved conclusion; equal calls share it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import replace
from typing import Any

import anyio
from anyio import lowlevel

from deepwork.engine.people import PersonReviews, waiting
from deepwork.engine.reports import Submission
from deepwork.engine.traces import review_span, span_of_call
from deepwork.errors import GateCannotFail, StateError, StorageError
from deepwork.gate.decision import Decision, DecisionKind, decide
from deepwork.gate.gate import QualityGate
from deepwork.gate.history import RecordedVerdicts, judgement_events, question
from deepwork.gate.judging import Judgement
from deepwork.gate.progress import ReviewProgress
from deepwork.gate.snapshot import Snapshot
from deepwork.models.replies import WaitsFor
from deepwork.models.reviews import Limits
from deepwork.models.sessions import Session
from deepwork.ports.call import ToolCall
from deepwork.programs.process_end import PendingRecord
from deepwork.sessions import transitions
from deepwork.sessions.attempts import attempts_of, times_asked
from deepwork.sessions.manager import StateManager
from deepwork.sessions.standing import is_open, paused, recent_entries

HEARTBEAT_SECONDS = 5.0
REPLACED = (
    "Something else was reported for this step meanwhile, so nobody was asked about these files. Call finished_step "
    "again if they are what counts. This counts as no attempt."
)

# The session as it was saved, and what was decided; no decision if the step was over by then.
Conclusion = tuple[Session, Decision | None]


class Review:
    """The review of one reported step.

    Args:
        gate: Judges the work.
        people: Keep what is reported, if they review it.
        sessions: The sessions, where the attempt and the conclusion are saved.
        session: The session as it was read a moment ago.
        submission: What is judged, and what completes the step if it passes.
    """

    def __init__(
        self,
        gate: QualityGate,
        people: PersonReviews,
        sessions: StateManager,
        session: Session,
        submission: Submission,
    ) -> None:
        self.is_ending = False
        self.replacement: anyio.Event | None = None
        self._gate = gate
        self._people = people
        self._sessions = sessions
        self._session = session
        self._completion, self._work = submission.completion, submission.work
        self._limits = Limits(gate.max_attempts, gate.max_failures, submission.is_strict)
        self._progress = ReviewProgress()
        self._callers = 0
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._conclusion: Conclusion | None = None
        self._error: Exception | None = None
        self._attempt: PendingRecord | None = None  # while it is counted, and nothing has come of it
        self._returning = anyio.Lock()

    async def without_verdicts(self, copied: Snapshot) -> Conclusion:
        """Have the work handed back by reviewers that give no verdicts; that counts no attempt."""
        return await self._concluded(await self._gate.judge(self._work, copied), attempted=False)

    def start(self, copied: Snapshot) -> None:
        """Begin the review in a task of its own, for it must outlive the caller that began it."""
        copied.is_handed_over = True
        self._caller = span_of_call()
        # A context of its own: that of the first caller would name its connection to the others.
        self._task = asyncio.get_running_loop().create_task(self._run(copied), context=Context())

    async def wait(self, call: ToolCall, copied: Snapshot) -> Conclusion:
        """Wait for the conclusion, and report the progress to the caller meanwhile.

        The caller's own copies are removed first, unless the review judges them.

        Raises:
            StateError: The review was ended with the server.
        """
        self._callers += 1
        try:
            if not copied.is_handed_over:
                await copied.remove()
            while not self._ended.is_set():
                if self._progress.total:
                    await call.progress(*self._progress.report)
                if not self._ended.is_set():
                    with anyio.move_on_after(HEARTBEAT_SECONDS):
                        await self._progress.change.wait()
        finally:
            self._callers -= 1
            if not self._callers:
                await self.end()
        if self.replacement:
            await self.replacement.wait()
            return await self._sessions.reload(self._session.session_id), None
        if self._error:
            raise self._error
        if self._conclusion is None:
            raise StateError("The review was ended with the server; nothing else was changed", hint="Call again.")
        return self._conclusion

    async def end(self) -> None:
        """Cancel the review if it still runs, and wait until everything that it has started is gone."""
        self.is_ending = True
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            # Not only by the review itself: its processes may take longer to end than the server has time.
            await self._return_attempt()
            await self._ended.wait()

    async def _run(self, copied: Snapshot) -> None:
        try:
            with self._scope:
                try:
                    self._conclusion = await self._review(copied)
                finally:
                    await copied.remove()
        except Exception as error:  # noqa: BLE001 - every caller gets it
            self._error = error
        finally:
            self.is_ending = True
            self._ended.set()
            self._progress.notify()

    async def _review(self, copied: Snapshot) -> Conclusion:
        """Count the attempt, have the work judged, and save what follows. No lock is held meanwhile."""
        kept = await self._people.kept(self._work, copied)
        with PendingRecord() as record:
            with anyio.CancelScope(shield=True):
                self._session, is_counted = await self._counted(kept)
            if not is_counted:
                return self._session, None
            self._attempt = record
            with review_span(self._caller, self._session, self._completion.step_id) as span:
                session, decision = await self._judged(copied)
                if decision:
                    span.set_attribute("deepwork.decision", decision.kind.value)
            return session, decision

    async def _judged(self, copied: Snapshot) -> Conclusion:
        """Have the work judged, and save what follows; give the attempt back if nothing comes of it."""
        known = RecordedVerdicts.of(recent_entries(self._session), self._completion.step_id).on
        try:
            judgement = await self._gate.judge(self._work, copied, known_verdict=known, progress=self._progress)
            await lowlevel.checkpoint_if_cancelled()
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._return_attempt(error)
            raise
        self._attempt = None
        # What was paid for is written down, even when the last caller goes at this moment.
        with anyio.CancelScope(shield=True):
            conclusion = await self._concluded(judgement, attempted=True)
        return conclusion  # noqa: RET504 - not from inside: for mypy a scope may swallow an exception

    async def _counted(self, kept: Mapping[str, Any]) -> tuple[Session, bool]:
        """Count an attempt, unless the step was completed meanwhile; return whether it was counted."""
        step_id = self._completion.step_id

        def count(current: Session) -> tuple[Session, bool]:
            if not is_open(current, step_id):
                return current, False
            now = self._sessions.now()
            return transitions.begin_attempt(current, self._completion, self._limits, now=now, kept=kept), True

        return await self._sessions.update_upgraded(self._session, count)

    async def _return_attempt(self, error: BaseException | None = None) -> None:
        """Take the attempt out of the count if nothing has come of it; what fails here must not hide why."""
        step_id = self._completion.step_id
        reason = str(error) if isinstance(error, StateError) else "the review was ended"

        def give_back(current: Session) -> tuple[Session, None]:
            if not is_open(current, step_id):
                return current, None
            return transitions.return_attempt(current, step_id, reason, now=self._sessions.now()), None

        async with self._returning:
            if self._attempt is None:
                return
            try:
                await self._sessions.update_upgraded(self._session, give_back)
            except StateError:
                pass
            finally:
                self._attempt.done()
                self._attempt = None

    async def _concluded(self, judgement: Judgement, *, attempted: bool) -> Conclusion:
        """Save a judgement and what follows from it; no decision if the step was over by then."""

        def conclude(current: Session) -> Conclusion:
            return self._conclude(current, judgement, attempted=attempted)

        try:
            session, decision = await self._sessions.update_upgraded(self._session, conclude)
        except StorageError:
            await judgement.undo()
            raise
        if decision and decision.kind is DecisionKind.PASSED and is_open(session, self._completion.step_id):
            transitions.check_not_paused(session)  # the verdict is kept, and counts when the step is reported again
        return session, decision

    def _conclude(self, session: Session, judgement: Judgement, *, attempted: bool) -> Conclusion:
        """Record a judgement in the session, and complete the step if it passed. Pure but for the clock."""
        step_id, limits, now = self._completion.step_id, self._limits, self._sessions.now()
        if not is_open(session, step_id):
            return transitions.record_all(session, step_id, judgement_events(judgement), now=now), None
        progress = session.step_progress[step_id]
        # A gate that cannot fail is no reviewer that was away: asking it again and again changes nothing.
        is_gate = bool(judgement.broken) and all(isinstance(one.error, GateCannotFail) for one in judgement.broken)
        failures = min(progress.runner_failures, limits.failures - 1) if is_gate else progress.runner_failures + 1
        decision = decide(
            judgement,
            limits,
            attempts=progress.quality_attempts,
            failures=failures,
        )
        events = judgement_events(judgement, asks_user=decision.asks_user)
        session = transitions.record_all(session, step_id, events, now=now)
        if decision.kind is DecisionKind.WAITING:
            session, decision = self._asked(session, judgement, decision, now=now)
        is_failure = decision.kind is DecisionKind.NO_VERDICT
        session = transitions.count_runner_failures(session, step_id, failures if is_failure else 0)
        if decision.kind is DecisionKind.HANDED_BACK:
            for hand_back in judgement.handed_back:
                session = transitions.hand_back(session, step_id, hand_back.verdict.feedback, now=now)
        if attempted and not decision.kind.counts:
            session = transitions.return_attempt(session, step_id, decision.kind, now=now)
        if decision.kind is DecisionKind.PASSED and not paused(session):
            session = transitions.complete(session, self._completion, now=now)
        return session, decision

    def _asked(
        self, session: Session, judgement: Judgement, decision: Decision, *, now: str
    ) -> tuple[Session, Decision]:
        """Record that a person is asked, unless another call has asked them meanwhile, or has reported something else.

        A second question would take back what they have decided since the first.
        """
        step_id = self._completion.step_id
        asked = question(judgement, self._work.key(judgement.fingerprints)[2])
        last = attempts_of(session, step_id)[-1]
        if last.attempt.work not in (None, asked.work):
            return session, Decision(DecisionKind.ASKED_FOR, REPLACED, notices=decision.notices)
        if times_asked(session, step_id) > times_asked(self._session, step_id):
            return session, replace(waiting(last), notices=decision.notices)
        session = transitions.record(session, now, asked, step_id)
        return session, replace(decision, waits_for=WaitsFor(where=asked.reference, since=now))


class Reviews:
    """All reviews that run in this server, by session, step, and digest of the submission."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str, str], Review] = {}

    async def share(self, review: Review, key: tuple[str, str, str], call: ToolCall, copied: Snapshot) -> Conclusion:
        """Join the review of an equal call, or begin this one.

        Raises:
            StateError: The review was ended with the server.
        """
        running = self._running.get(key)
        if running is None or running.is_ending:
            running = self._running[key] = review
            review.start(copied)
        try:
            return await running.wait(call, copied)
        finally:
            if running.is_ending and self._running.get(key) is running:
                del self._running[key]

    @asynccontextmanager
    async def replaced(self, session_id: str, step_id: str) -> AsyncIterator[None]:
        """End the reviews of a step, and keep their callers waiting until the block is through."""
        reviews = [
            review for key, review in self._running.items() if key[:2] == (session_id, step_id) and not review.is_ending
        ]
        replacement = anyio.Event()
        try:
            for review in reviews:
                review.replacement = replacement
                await review.end()
            yield
        finally:
            replacement.set()

    async def close(self) -> None:
        """End everything."""
        for review in [*self._running.values()]:
            await review.end()
