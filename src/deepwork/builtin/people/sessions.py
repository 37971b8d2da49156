"""What of the sessions waits for a person: steps that only they can let go on, and damaged files."""

from __future__ import annotations

import re
import sys
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from deepwork.api import Project, standing, standing_in
from deepwork.errors import CorruptSession, UnknownItem
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.models.standing import Pause, WaitingStep, WaitKind
from deepwork.ports.call import LOCAL
from deepwork.ports.inbox import Answer, Answerer, InboxAction, InboxItem, InboxSource
from deepwork.ports.state_store import StateStore
from deepwork.text import is_overdue, is_past, one_line

PASS = InboxAction(name="pass", label="Pass", comments=True)
CHANGES = InboxAction(name="changes", label="Request changes", text="what has to change", comments=True)
OVERRIDE = InboxAction(name="override", label="Let it pass", text="reason")
RETRY = InboxAction(name="retry", label="Begin the step again", text="note to the agent")
ABORT = InboxAction(name="abort", label="End the workflow", text="reason")
UNPAUSE = InboxAction(name="unpause", label="Let it go on", text="note to the agent")
LIMIT = "limit"
PAUSED = "paused"

_WHAT = {
    WaitKind.FAILED_GATE: "needs work after {attempts} reviews",
    WaitKind.NO_VERDICT: "was not judged in {failures} calls",
    WaitKind.RUNNER: "needs a reviewer that works",
    WaitKind.OVERRIDE: "asks to pass without a review",
    WaitKind.PERSON: "waits for your review",
}
_DAMAGED_AT = re.compile(r"\.(\d{8}T\d{6})\.")


class SessionInbox(InboxSource):
    """The sessions of a project."""

    name = "sessions"
    contested = (PASS.name, CHANGES.name)

    def __init__(self, project: Project) -> None:
        self._project = project
        self._stamps: Mapping[str, Hashable] | None = None
        self._items: list[InboxItem] = []
        # The items of each active session, and when it was changed last.
        self._known: dict[str, tuple[str, list[InboxItem]]] = {}

    async def items(self) -> list[InboxItem]:
        """Read those of the active sessions that have changed, and the names of damaged ones."""
        store = await self._project.sessions().store()
        stamps = await store.stamps()
        if stamps != self._stamps:
            self._items = [*await self._waiting(store), *map(_damaged, await store.damaged())]
            self._stamps = stamps
        after = self._project.pieces().after
        return [_urged(item, after) for item in self._items if not _is_over(item)]

    async def _waiting(self, store: StateStore) -> list[InboxItem]:
        known: dict[str, tuple[str, list[InboxItem]]] = {}
        for summary in await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize):
            updated_at, items = self._known.get(summary.session_id, ("", []))
            if updated_at != summary.updated_at:
                items = await _items_of(store, summary)
            known[summary.session_id] = summary.updated_at, items
        self._known = known
        return [item for _, items in known.values() for item in items]

    async def answer_comments(self, item_id: str, answer: Answer, by: Answerer) -> str:
        """Write down what a person who reviews a step has decided."""
        session_id, _, step_id = item_id.partition(".")
        session = await self._project.pieces().decide(session_id, step_id, answer, by)
        what = "passes" if answer.action == PASS.name else "needs the changes that you ask for"
        return f"Step {step_id!r} of {session.workflow} {what}; its agent is told when it reports the step again"

    async def answer(self, item_id: str, action: str, text: str | None, by: Answerer) -> str:
        """Do what `deepwork sessions override`, `reopen` and `abort` do."""
        session_id, _, step_id = item_id.removeprefix(f"{PAUSED}.").partition(".")
        session = await (await self._project.sessions().store()).load(session_id)
        if session is None:
            raise UnknownItem(f"Session {session_id!r} is gone; nothing was changed")
        reason = text or ""
        if action == UNPAUSE.name:
            await self._project.interventions().unpause(session, text, by)
            return f"{session.workflow}, session {session_id}, may go on; its agent hears that when it is at work"
        if action == OVERRIDE.name:
            await self._project.interventions().override(session, step_id, reason, by)
            return f"Step {step_id!r} of {session.workflow} passes without a review when the agent reports it next"
        if action == RETRY.name:
            await self._project.interventions().go_back(session, step_id, reason, by)
            return (
                f"Step {step_id!r} of {session.workflow} has begun again, with all its attempts; tell the agent to go "
                f"on with session {session_id}"
            )
        await self._project.interventions().abort(session, reason)
        return f"{session.workflow}, session {session_id}, is aborted"


def _urged(item: InboxItem, after: float | None) -> InboxItem:
    """Return an item as more urgent than others if its review is overdue; its state stays, for people look at it."""
    if item.kind != WaitKind.PERSON or not is_overdue(item.since, after):
        return item
    return replace(item, urgency=1, what=f"{item.what}, and is overdue")


def _is_over(item: InboxItem) -> bool:
    """True if this tells of a limit whose time has passed."""
    return item.kind == LIMIT and is_past(item.state.partition(" ")[2], datetime.now(UTC))


async def _items_of(store: StateStore, summary: SessionSummary) -> list[InboxItem]:
    """Return the items of a session. Its head says whether there are any, and the session what they are."""
    state = await standing_in(store, summary)
    paused = [_paused_item(summary, state.paused)] if state and state.paused else []
    if state is None or not state.waits:
        return [*paused, *([_pause_item(summary, state.pause)] if state and state.pause else [])]
    with suppress(CorruptSession):  # it is named among the damaged from now on
        session = await store.load(summary.session_id)
        return [*paused, *(_item(session, step) for step in standing.waiting_steps(session))] if session else []
    return []


def _paused_item(summary: SessionSummary, reason: str) -> InboxItem:
    """Return the item of a session that a person has paused; it is listed without a notification."""
    return InboxItem(
        id=f"{PAUSED}.{summary.session_id}",
        kind=PAUSED,
        who=f"session {summary.session_id[:8]}",
        what=f"{summary.workflow}: paused at step {summary.step_id!r}: {reason}",
        detail=f"Goal: {one_line(summary.goal)}",
        since=summary.updated_at,
        state=f"{PAUSED} {reason}",
        reference={"kind": "session", "id": summary.session_id, "step_id": summary.step_id},
        principal=summary.principal,
        held_by="a person",
        actions=(UNPAUSE, ABORT),
    )


def _pause_item(summary: SessionSummary, pause: Pause) -> InboxItem:
    """Return the item that tells people of a limit; it needs no answer."""
    return InboxItem(
        id=f"{summary.session_id}.{summary.step_id}",
        kind=LIMIT,
        who=f"session {summary.session_id[:8]}",
        what=f"{summary.workflow}: step {summary.step_id!r} waits until {pause.until}: {pause.cause}",
        detail=f"Goal: {one_line(summary.goal)}",
        since=summary.updated_at,
        state=f"{LIMIT} {pause.until}",
        reference={"kind": "session", "id": summary.session_id, "step_id": summary.step_id},
        principal=summary.principal,
        actions=(ABORT,),
    )


def _item(session: Session, step: WaitingStep) -> InboxItem:
    progress = session.step_progress[step.step_id]
    why = _WHAT[step.kind].format(attempts=progress.quality_attempts, failures=progress.runner_failures)
    reason = (
        "The agent's reason: " if step.kind is WaitKind.OVERRIDE or (step.kind is WaitKind.PERSON and step.text) else ""
    )
    return InboxItem(
        id=f"{session.session_id}.{step.step_id}",
        kind=step.kind,
        who=f"session {session.session_id[:8]}",
        what=f"{session.workflow}: step {step.step_id!r} {why}",
        detail=f"Goal: {one_line(session.goal)}\n{reason}{step.text}".rstrip(),
        files=step.files,
        criteria=tuple(
            f"{name}: {question}"
            for review in session.pinned.steps[step.step_id].reviews
            for name, question in review.quality_criteria.items()
        ),
        since=step.since,
        state=step.state,
        reference={"kind": "session", "id": session.session_id, "step_id": step.step_id},
        principal=session.principal,
        actions=(PASS, CHANGES, RETRY, ABORT) if step.kind is WaitKind.PERSON else (OVERRIDE, RETRY, ABORT),
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
        principal=LOCAL,  # its owner can no longer be known
    )
