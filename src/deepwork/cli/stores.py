"""Access of commands to the sessions of a project: what a command opens is closed when it ends."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from deepwork.engine.interventions import Interventions
from deepwork.errors import UnknownSession
from deepwork.loading.faults import stdout_on_stderr
from deepwork.models.sessions import Session, is_session_id
from deepwork.ports.state_store import StateStore
from deepwork.project.project import Project
from deepwork.sessions.manager import StateManager

ResultT = TypeVar("ResultT")


def with_sessions(project: Project, use: Callable[[StateManager], Awaitable[ResultT]]) -> ResultT:
    """Run `use` with the sessions of a project."""

    async def run() -> ResultT:
        try:
            return await use(project.sessions())
        finally:
            await project.close()

    with stdout_on_stderr():  # stores are code of plugins
        return anyio.run(run)


def with_store(project: Project, use: Callable[[StateStore], Awaitable[ResultT]]) -> ResultT:
    """Run `use` with the state store of a project."""

    async def use_store(sessions: StateManager) -> ResultT:
        return await use(await sessions.store())

    return with_sessions(project, use_store)


def change_session(
    project: Project, session_id: str, change: Callable[[Interventions, Session], Awaitable[Session]]
) -> Session:
    """Have a person change a session, which is named by its id or by a prefix that no other id has."""

    async def use(sessions: StateManager) -> Session:
        session = await load_session(await sessions.store(), session_id)
        return await change(project.interventions(), session)

    return with_sessions(project, use)


def read_session(project: Project, session_id: str) -> Session:
    """Read a session by its id, or by a prefix that no other id has."""
    return with_store(project, lambda store: load_session(store, session_id))


async def load_session(store: StateStore, session_id: str) -> Session:
    """Load a session by its id, or by a prefix that no other id has.

    Raises:
        UnknownSession: No id, or more than one, begins like this.
    """
    if is_session_id(session_id) and (session := await store.load(session_id)):
        return session
    ids = [summary.session_id for summary in await store.find(limit=sys.maxsize)]
    matches = [candidate for candidate in ids if candidate.startswith(session_id)]
    if len(matches) == 1 and (session := await store.load(matches[0])):
        return session
    problem = f"is the beginning of {len(matches)} ids" if matches else "not found"
    raise UnknownSession(f"Session {session_id!r} {problem}", hint="`deepwork sessions list --all` shows all of them.")
