"""The sessions that a caller may go on with. Listing them may fail or be slow; a reply does not wait for it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from anyio import from_thread

from deepwork.engine.resume import GOAL_LENGTH
from deepwork.errors import DeepWorkError
from deepwork.models.replies import ActiveSession
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.models.standing import resume_call
from deepwork.ports.call import ToolCall
from deepwork.sessions.manager import StateManager
from deepwork.text import one_line

MAX_LISTED = 10
MAX_LOOKUPS = 8
SECONDS = 1.0

UNKNOWN = (
    "The active sessions could not be listed. If you have lost track of a workflow, "
    'finished_step(step_id="?", outputs={}) tells where it is.'
)

T = TypeVar("T")

log = logging.getLogger("deepwork.engine")


class ActiveSessions:
    """Lists active sessions within a second."""

    def __init__(self, sessions: StateManager) -> None:
        self._sessions = sessions
        self._lookups: set[asyncio.Task[Any]] = set()

    def list_from_thread(self, call: ToolCall) -> tuple[list[ActiveSession], list[str]]:
        """List the caller's active sessions, for a sync tool: its thread waits for the event loop."""
        try:
            summaries = from_thread.run(self._summaries, call)
        except RuntimeError:  # the engine is used outside of a server, where no event loop serves this thread
            return [], []
        if summaries is None:
            return [], [UNKNOWN]
        return [_info(summary) for summary in summaries[:MAX_LISTED]], []

    async def infos(self, call: ToolCall) -> list[ActiveSession]:
        """List the caller's active sessions; none if the store fails or takes too long."""
        return [_info(summary) for summary in await self._summaries(call) or []]

    async def others_of(self, call: ToolCall, session: Session) -> list[str]:
        """Return the notice that a workflow that is started is active already, with both ways on; else nothing."""
        other = await self._looked_up(call, self._find_other(session))
        if other is None:
            return []
        return [
            f"{session.workflow} is active already: session {other.session_id!r}, step {other.step_id!r}: "
            f"{one_line(other.goal, GOAL_LENGTH)!r}. To go on with that one, call {resume_call(other.session_id)}, "
            f"and abort_workflow(session_id={session.session_id!r}, explanation=...) for this new one. Otherwise go on "
            "with this one."
        ]

    async def _summaries(self, call: ToolCall) -> list[SessionSummary] | None:
        """List the caller's active sessions, the newest first; None if the store fails or takes too long."""
        return await self._looked_up(call, self._find(call)) if call.may_list else []

    async def _looked_up(self, call: ToolCall, question: Coroutine[Any, Any, T]) -> T | None:
        """Ask the store; None if it fails or takes too long."""
        if not call.may_list or len(self._lookups) >= MAX_LOOKUPS:
            # Those lookups wait for a slow store, and this one would wait too.
            question.close()
            return None
        lookup = asyncio.create_task(question)
        self._lookups.add(lookup)
        lookup.add_done_callback(self._forget)
        finished, _ = await asyncio.wait({lookup}, timeout=SECONDS)
        if not finished:
            return None
        error = lookup.exception()
        if error:
            _tell(error)
            return None
        return lookup.result()

    def _forget(self, lookup: asyncio.Task[Any]) -> None:
        self._lookups.discard(lookup)
        if not lookup.cancelled():
            lookup.exception()  # asyncio complains of an error that is never retrieved

    async def _find(self, call: ToolCall) -> list[SessionSummary]:
        store = await self._sessions.store()
        summaries = await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize)
        return [summary for summary in summaries if summary.principal == call.principal]

    async def _find_other(self, session: Session) -> SessionSummary | None:
        return await (await self._sessions.store()).other_active(session)


def _tell(error: BaseException) -> None:
    """Log why sessions could not be listed: in a sentence, unless it is a bug."""
    if not isinstance(error, DeepWorkError):
        log.warning("the active sessions could not be listed", exc_info=error)
        return
    log.warning("the active sessions could not be listed: %s", error.message)
    log.debug("the active sessions could not be listed", exc_info=error)


def _info(summary: SessionSummary) -> ActiveSession:
    return ActiveSession(
        session_id=summary.session_id,
        workflow=summary.workflow,
        step=summary.step_id,
        goal=one_line(summary.goal, GOAL_LENGTH),
        updated_at=summary.updated_at,
        resume=resume_call(summary.session_id),
    )
