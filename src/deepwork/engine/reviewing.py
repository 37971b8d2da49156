"""One call of `finished_step` at the gate: from the attempt to what is stored of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio

from deepwork.engine import attempts, evidence, progress
from deepwork.engine.begin import entry_of
from deepwork.engine.flight import Flights
from deepwork.engine.gate import Case, Judgement, QualityGate
from deepwork.engine.ruling import Kind, Limits, Ruling, decide
from deepwork.engine.sessions import StateManager
from deepwork.engine.watch import Watch
from deepwork.errors import StaleSession, StateError, StorageError, ToolError
from deepwork.models.sessions import Session
from deepwork.ports.call import ToolCall

# As often as in the engine: each lost race means that somebody else got through.
MAX_RACES = 20

Complete = Callable[[Session], Awaitable[Session]]


@dataclass(frozen=True)
class Reviewed:
    """What came of a review: the session as it was saved; no ruling if the step was over by then."""

    session: Session
    ruling: Ruling | None


class Reviewing:
    """Leads calls through the gate. No lock is held while a review runs."""

    def __init__(self, gate: QualityGate, sessions: StateManager, now: Callable[[], str]) -> None:
        self._gate = gate
        self._sessions = sessions
        self._now = now
        self._flights: Flights[Reviewed] = Flights()

    async def review(self, call: ToolCall, session: Session, case: Case, complete: Complete) -> Reviewed:
        """Have a step judged, and complete it if it passes.

        Args:
            call: Told how far the review is.
            session: As it was read.
            case: What was submitted.
            complete: Makes of a session the one in which the step is completed.

        Raises:
            StaleSession: The session was changed since it was read, or the review was overridden.
            StorageError: Nothing could be saved.
        """
        if not self._gate.gives_verdicts(case):
            return await self._without_verdict(session, case, complete)
        found = await self._gate.take_evidence(case)
        content = evidence.digest_of(sorted(case.outputs.items()), evidence.digests(found, case.paths))

        async def tell(watch: Watch) -> None:
            if watch.total:
                await call.progress(watch.progress, watch.total, watch.text)

        return await self._flights.share(
            _about(session, case.step.id),
            content,
            lambda watch: self._judge(session, case, found, complete, watch),
            tell,
        )

    def replaced(self, session: Session, step_id: str) -> AbstractAsyncContextManager[bool]:
        """End the reviews of a step, for a call that overrides them; their callers wait for the end of the block."""
        return self._flights.replaced(_about(session, step_id))

    async def close(self) -> None:
        """End all reviews."""
        await self._flights.close()

    async def _without_verdict(self, session: Session, case: Case, complete: Complete) -> Reviewed:
        """Hand a step back, whose reviews all go to runners that give no verdicts; no attempt is counted."""
        judgement = Judgement(tuple(await self._gate.hand_back(case)), self._gate.skipped(case))
        ruling = decide(judgement, Limits(0, self._gate.max_attempts, 0, self._gate.max_failures))
        now = self._now()
        session = attempts.keep(session, case.step.id, judgement, now=now)
        if ruling.kind is Kind.PASSED:  # there was nothing to review
            return Reviewed(await self._sessions.save(await complete(session)), ruling)
        for verdict in judgement.handed_back:
            session = progress.hand_back(session, case.step.id, verdict.feedback, now=now)
        return Reviewed(await self._save_or_undo(session, judgement), ruling)

    async def _judge(
        self, session: Session, case: Case, found: evidence.Evidence, complete: Complete, watch: Watch
    ) -> Reviewed:
        step_id = case.step.id
        with anyio.CancelScope(shield=True):
            await self._sessions.save(attempts.begin_attempt(session, step_id, now=self._now()))
        try:
            passed = attempts.passed_before(session, step_id)
            judgement = await self._gate.judge(case, found, passed_before=passed, watch=watch)
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._return_attempt(session.session_id, step_id, error)
            raise
        # What was paid for is written down, even when the last caller goes at this moment.
        with anyio.CancelScope(shield=True):
            reviewed = await self._conclude(session.session_id, step_id, judgement, complete)
        return reviewed  # noqa: RET504 - not from inside: for mypy a scope may swallow an exception

    async def _conclude(self, session_id: str, step_id: str, judgement: Judgement, complete: Complete) -> Reviewed:
        for _ in range(MAX_RACES):
            session = await self._sessions.reload(session_id)
            now = self._now()
            kept = attempts.keep(session, step_id, judgement, now=now)
            try:
                if not _is_open(session, step_id):
                    return Reviewed(await self._sessions.save(kept), None)
                ruling = decide(judgement, self._limits(session, step_id))
                changed = attempts.apply(kept, step_id, judgement, ruling, now=now)
                if ruling.kind is Kind.PASSED:
                    changed = await self._completed(changed, complete)
                return Reviewed(await self._save_or_undo(changed, judgement), ruling)
            except StaleSession:
                continue
        raise StaleSession(f"Session {session_id!r} is being changed all the time; call again")

    async def _completed(self, session: Session, complete: Complete) -> Session:
        """Complete the step; if that cannot be, the verdicts are kept, so that they are not paid for again."""
        try:
            return await complete(session)
        except StaleSession:
            raise
        except ToolError:
            await self._sessions.save(session)
            raise

    async def _save_or_undo(self, session: Session, judgement: Judgement) -> Session:
        try:
            return await self._sessions.save(session)
        except StorageError:
            for verdict in judgement.handed_back:
                await verdict.undo()
            raise

    async def _return_attempt(self, session_id: str, step_id: str, error: BaseException) -> None:
        """Give an attempt back whose review was ended; whatever fails here must not hide why."""
        reason = str(error) if isinstance(error, StateError) else "the review was ended"
        try:
            for _ in range(MAX_RACES):
                session = await self._sessions.reload(session_id)
                if not _is_open(session, step_id):
                    return
                try:
                    await self._sessions.save(attempts.give_back(session, step_id, reason, now=self._now()))
                    return
                except StaleSession:
                    continue
        except StateError:
            return

    def _limits(self, session: Session, step_id: str) -> Limits:
        step = session.step_progress[step_id]
        gate = self._gate
        return Limits(step.quality_attempts, gate.max_attempts, step.runner_failures + 1, gate.max_failures)


def _about(session: Session, step_id: str) -> tuple[str, str]:
    return session.session_id, step_id


def _is_open(session: Session, step_id: str) -> bool:
    if not session.is_active or session.step_progress[step_id].completed_at:
        return False
    return step_id in entry_of(session.pinned, session.current_step_id)
