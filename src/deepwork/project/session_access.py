"""Access of commands to the sessions of a project: what a command opens is closed when it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import anyio

from deepwork.engine.interventions import Interventions
from deepwork.models.sessions import Session
from deepwork.ports.state_store import StateStore
from deepwork.programs.stdout import stdout_on_stderr
from deepwork.sessions.manager import StateManager, load_session

ResultT = TypeVar("ResultT")


class Project(Protocol):
    """What is needed of a project: its sessions, and what a person does to them."""

    def sessions(self) -> StateManager: ...
    def interventions(self) -> Interventions: ...
    async def close(self) -> None: ...


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
