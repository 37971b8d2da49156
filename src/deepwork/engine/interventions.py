"""What a person does to a session: lets a step pass, goes back to a step, ends it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from deepwork.engine.reports import session_over
from deepwork.errors import CorruptSession, StateError
from deepwork.models.sessions import Session, SessionStatus
from deepwork.models.standing import PERSON
from deepwork.ports.inbox import Answerer
from deepwork.sessions import transitions
from deepwork.sessions.definition import check_unchanged
from deepwork.sessions.manager import StateManager, load_session
from deepwork.sessions.standing import gone_at, is_open, last_completed, open_steps, paused, waiting_steps

Upgrade = Callable[[Session], Session]


class Interventions:
    """The changes of a person to sessions; `upgrade` makes a stored one of an earlier release ready for use."""

    def __init__(self, sessions: StateManager, upgrade: Upgrade) -> None:
        self._sessions = sessions
        self._upgrade = upgrade

    async def named(self, session_id: str) -> Session:
        """Read a session by its id, or by a prefix that no other id has.

        Raises:
            UnknownSession: No id, or more than one, begins like this.
        """
        return await load_session(await self._sessions.store(), session_id)

    async def override(self, session: Session, step_id: str, reason: str, by: Answerer) -> Session:
        """Let a step pass without a review when it is reported next.

        Raises:
            PersonNeeded: No person does it.
            StateError: The session is over, the step is not open, or the stored definition was edited.
        """
        by.check_person("override a review")

        def permit(current: Session) -> Session:
            check_unchanged(current)
            _check_open(current, step_id)
            return transitions.permit_override(
                current, step_id, reason.strip(), by.recorded(), now=self._sessions.now()
            )

        return await self._sessions.update(session, permit)

    async def pause(self, session: Session, reason: str, by: Answerer) -> Session:
        """Let no step of a session be completed, and no workflow start on top of it, until it is unpaused.

        Raises:
            PersonNeeded: No person does it.
            StateError: The session is over, or is paused already.
        """
        by.check_person("pause a session")

        def pause(current: Session) -> Session:
            if not current.is_active:
                raise over(current)
            if paused(current):
                raise StateError(
                    f"Session {current.session_id!r} is paused already; nothing was changed",
                    hint=f"deepwork sessions unpause {current.session_id}",
                )
            return transitions.pause(current, reason.strip(), _author(by), now=self._sessions.now())

        return await self._sessions.update(session, pause)

    async def unpause(self, session: Session, text: str | None, by: Answerer) -> Session:
        """Let a paused session go on, and tell its agent the text, if there is one, as a note on its step.

        Raises:
            PersonNeeded: No person does it.
            StateError: The session is not paused.
        """
        by.check_person("let a paused session go on")

        def unpause(current: Session) -> Session:
            if not paused(current):
                raise StateError(f"Session {current.session_id!r} is not paused; nothing was changed")
            going_on = transitions.unpause(current, _author(by), now=self._sessions.now())
            return self._noted(going_on, text, by) if text else going_on

        return await self._sessions.update(session, unpause)

    async def say(self, session: Session, text: str, by: Answerer) -> Session:
        """Tell the agent of a session something: it stands as a note on the current step.

        Raises:
            PersonNeeded: No person does it.
            StateError: The session is over.
        """
        by.check_person("say something to an agent in the name of its user")

        def say(current: Session) -> Session:
            if not current.is_active:
                raise over(current)
            return self._noted(current, text, by)

        return await self._sessions.update(session, say)

    async def agent_gone(self, session: Session, client: str) -> Session:
        """Note that the client of an agent of a session has ended, unless the session is over or says so already."""

        def gone(current: Session) -> Session:
            if not current.is_active or gone_at(current):
                return current
            return transitions.agent_gone(current, client, now=self._sessions.now())

        return await self._sessions.update(session, gone)

    async def abort(self, session: Session, reason: str) -> Session:
        """End a session that will not be continued.

        Raises:
            StateError: It is over.
        """

        def end(current: Session) -> Session:
            if not current.is_active:
                raise over(current)
            reply = transitions.recorded_abort(current, reason, None)
            return transitions.abort(current, reply, now=self._sessions.now())

        return await self._sessions.update(session, end)

    async def go_back(
        self, session: Session, step_id: str | None, reason: str, by: Answerer, *, accept_definition: bool = False
    ) -> Session:
        """Make a step, or the one completed last, the current one again; attempts are counted anew.

        The agent is told the reason as a note. A definition that was edited where it is stored has to be accepted.

        Raises:
            PersonNeeded: A step of the session waits for a person, or its edited definition is to be accepted, and no
                person does it.
            StateError: A session that nests in this one is active, there is no such step, or the stored definition was
                edited and is not accepted.
        """
        await self._check_no_child(session)

        def reopened(current: Session) -> Session:
            if accept_definition and current.definition and not current.is_unchanged:
                by.check_person("go on with a definition that was edited")
                current = transitions.accept_definition(current, by.recorded(), now=self._sessions.now())
            upgraded_session = self._upgrade(current)
            # Otherwise an agent with a shell would have all attempts at a failed review again.
            if current.is_active and any(waiting_steps(upgraded_session)):
                by.check_person("begin a step again in a session that waits for a person")
            chosen_step = step_id or _last_step(upgraded_session)
            reopened_session = transitions.reopen(upgraded_session, chosen_step, reason, now=self._sessions.now())
            return transitions.write_note(reopened_session, chosen_step, reason, _author(by), now=self._sessions.now())

        return await self._sessions.update(session, reopened)

    def _noted(self, session: Session, text: str, by: Answerer) -> Session:
        now = self._sessions.now()
        return transitions.write_note(session, session.current_step_id, text.strip(), _author(by), now=now)

    async def _check_no_child(self, session: Session) -> None:
        store = await self._sessions.store()
        for summary in await store.find(status=SessionStatus.ACTIVE, limit=sys.maxsize):
            with suppress(CorruptSession):
                child = await store.load(summary.session_id)
                if child and session.session_id in child.parents:
                    raise StateError(
                        f"{child.workflow}, session {child.session_id!r}, runs inside of this session; nothing was "
                        "changed",
                        hint=f"Finish it first, or: deepwork sessions abort {child.session_id} --reason TEXT",
                    )


def over(session: Session) -> StateError:
    """Make the error for a command about a session that is over."""
    return session_over(
        session,
        hint=f"`deepwork sessions show {session.session_id}` shows what came of it, `sessions reopen` goes back to a "
        "step.",
    )


def _author(by: Answerer) -> dict[str, Any]:
    return by.recorded() | {"by": PERSON if by.is_person else None}


def _check_open(session: Session, step_id: str) -> None:
    if not session.is_active or session.definition is None:
        raise session_over(session)
    if step_id not in session.step_progress or not is_open(session, step_id):
        raise StateError(
            f"Step {step_id!r} of session {session.session_id!r} cannot be reported now; nothing was changed",
            hint=f"Open now: {', '.join(open_steps(session))}.",
        )


def _last_step(session: Session) -> str:
    if session.status is SessionStatus.ABORTED:
        raise over(session)
    progress = last_completed(session)
    if progress is None:
        raise StateError(f"No step of session {session.session_id!r} is completed; there is nothing to undo")
    return progress.step_id
