"""What of the sessions waits for a person: steps that only they can let go on, and damaged files."""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from datetime import datetime

from deepwork.engine.interventions import Interventions
from deepwork.errors import CorruptSession, UnknownItem
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.ports.call import LOCAL
from deepwork.ports.inbox import Answerer, InboxAction, InboxItem, InboxSource
from deepwork.ports.state_store import StateStore
from deepwork.sessions.manager import StateManager, standing_in
from deepwork.sessions.standing import WaitingStep, WaitKind, waiting_steps
from deepwork.text.foreign import one_line

OVERRIDE = InboxAction(name="override", label="Let it pass", text="reason")
RETRY = InboxAction(name="retry", label="Begin the step again", text="note to the agent")
ABORT = InboxAction(name="abort", label="End the workflow", text="reason")

_WHAT = {
    WaitKind.FAILED_GATE: "failed {attempts} reviews",
    WaitKind.NO_VERDICT: "got no verdict in {failures} calls",
    WaitKind.RUNNER: "needs a reviewer that works",
    WaitKind.OVERRIDE: "asks to pass without a review",
}
_DAMAGED_AT = re.compile(r"\.(\d{8}T\d{6})\.")


class SessionInbox(InboxSource):
    """The sessions of a project.

    Args:
        sessions: The sessions.
        interventions: What a person does to them.
    """

    def __init__(self, sessions: StateManager, interventions: Interventions) -> None:
        self._sessions = sessions
        self._interventions = interventions
        self._stamps: Mapping[str, Hashable] | None = None
        self._items: list[InboxItem] = []
        # The items of each active session, and when it was changed last.
        self._known: dict[str, tuple[str, list[InboxItem]]] = {}

    async def items(self) -> list[InboxItem]:
        """Read those of the active sessions that have changed, and the names of damaged ones."""
        store = await self._sessions.store()
        stamps = await store.stamps()
        if stamps != self._stamps:
            self._items = [*await self._waiting(store), *map(_damaged, await store.damaged())]
            self._stamps = stamps
        return self._items

    async def _waiting(self, store: StateStore) -> list[InboxItem]:
        known: dict[str, tuple[str, list[InboxItem]]] = {}
        for summary in await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize):
            updated_at, items = self._known.get(summary.session_id, ("", []))
            if updated_at != summary.updated_at:
                items = await _items_of(store, summary)
            known[summary.session_id] = summary.updated_at, items
        self._known = known
        return [item for _, items in known.values() for item in items]

    async def answer(self, item_id: str, action: str, text: str | None, by: Answerer) -> str:
        """Do what `deepwork sessions override`, `reopen` and `abort` do."""
        session_id, _, step_id = item_id.partition(".")
        session = await (await self._sessions.store()).load(session_id)
        if session is None:
            raise UnknownItem(f"Session {session_id!r} is gone; nothing was changed")
        reason = text or ""
        if action == OVERRIDE.name:
            await self._interventions.override(session, step_id, reason, by)
            return f"Step {step_id!r} of {session.workflow} passes without a review when the agent reports it next"
        if action == RETRY.name:
            await self._interventions.go_back(session, step_id, reason, by)
            return (
                f"Step {step_id!r} of {session.workflow} has begun again, with all its attempts; tell the agent to go "
                f"on with session {session_id}"
            )
        await self._interventions.abort(session, reason)
        return f"{session.workflow}, session {session_id}, is aborted"


async def _items_of(store: StateStore, summary: SessionSummary) -> list[InboxItem]:
    """Return the items of a session. Its head says whether there are any, and the session what they are."""
    standing = await standing_in(store, summary)
    if standing is None or not standing.waits:
        return []
    with suppress(CorruptSession):  # it is named among the damaged from now on
        session = await store.load(summary.session_id)
        return [_item(session, step) for step in waiting_steps(session)] if session else []
    return []


def _item(session: Session, step: WaitingStep) -> InboxItem:
    progress = session.step_progress[step.step_id]
    why = _WHAT[step.kind].format(attempts=progress.quality_attempts, failures=progress.runner_failures)
    reason = "The agent's reason: " if step.kind is WaitKind.OVERRIDE else ""
    return InboxItem(
        id=f"{session.session_id}.{step.step_id}",
        kind=step.kind,
        who=f"session {session.session_id[:8]}",
        what=f"{session.workflow}: step {step.step_id!r} {why}",
        detail=f"Goal: {one_line(session.goal)}\n{reason}{step.text}",
        since=step.since,
        state=f"{step.kind} {step.since}",
        reference={"kind": "session", "id": session.session_id, "step_id": step.step_id},
        principal=session.principal,
        actions=(OVERRIDE, RETRY, ABORT),
    )


def _damaged(name: str) -> InboxItem:
    match = _DAMAGED_AT.search(name)
    since = datetime.strptime(f"{match[1]}+0000", "%Y%m%dT%H%M%S%z").isoformat() if match else ""
    return InboxItem(
        id=f"damaged.{name.rpartition('/')[2]}",
        kind="damaged-session",
        what=f"A session could not be read: {name}",
        detail="Look into it for what was done, and have the workflow started anew; then remove it.",
        since=since,
        state="damaged",
        reference={"kind": "file", "id": name},
        principal=LOCAL,  # nobody knows any more whose it was
    )
