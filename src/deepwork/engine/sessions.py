"""The sessions of all connections: a stack of ids for each, their state always read from the store."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from typing import NamedTuple
from weakref import WeakKeyDictionary

import anyio

from deepwork.errors import CorruptSession, NoActiveSession, UnknownSession
from deepwork.models.replies import StackEntry
from deepwork.models.sessions import Session, SessionStatus, SessionSummary
from deepwork.ports.call import Connection, ToolCall
from deepwork.ports.records import StateStoreSpec
from deepwork.ports.state_store import StateStore
from deepwork.workspace import Workspace


class Target(NamedTuple):
    """The session that a call means, and whether this call has put it on the stack."""

    session: Session
    adopted: bool


class StateManager:
    """Stacks over a state store.

    A stack is a list of ids; it starts empty and is filled by starting and by adopting. Sessions that
    have ended elsewhere drop out when it is read.
    """

    def __init__(self, spec: StateStoreSpec, workspace: Workspace) -> None:
        self._spec = spec
        self._workspace = workspace
        self._opened = AsyncExitStack()
        self._opening = anyio.Lock()
        self._store: StateStore | None = None
        self._stacks: WeakKeyDictionary[Connection, list[str]] = WeakKeyDictionary()
        self._seen: WeakKeyDictionary[Connection, list[StackEntry]] = WeakKeyDictionary()
        self._ended: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
        self._damaged: WeakKeyDictionary[Connection, list[str]] = WeakKeyDictionary()

    async def store(self) -> StateStore:
        """Give the store, opened at its first use."""
        if self._store is None:
            async with self._opening:
                if self._store is None:
                    self._store = await self._opened.enter_async_context(self._spec.open(self._workspace))
        return self._store

    async def close(self) -> None:
        """Close the store; the next use opens it again."""
        self._store = None
        await self._opened.aclose()

    async def load(self, session_id: str) -> Session | None:
        """Read a session, whatever its state."""
        return await (await self.store()).load(session_id)

    async def save(self, session: Session) -> Session:
        """Save a change of a session that was read before.

        Raises:
            StaleSession: It was changed by somebody else meanwhile.
        """
        revision = await (await self.store()).save(session, expected=session.revision)
        return session.model_copy(update={"revision": revision})

    async def create(self, call: ToolCall, session: Session) -> Session:
        """Save a new session and put it on top of the stack."""
        revision = await (await self.store()).save(session, expected=None)
        self._push(call.connection, [session.session_id])
        return session.model_copy(update={"revision": revision})

    async def stack(self, call: ToolCall) -> list[Session]:
        """Read the active sessions of the connection, the newest last."""
        sessions = [session for session_id in [*self._ids(call)] if (session := await self._read(call, session_id))]
        active = [session for session in sessions if session.is_active]
        gone = set(self._ids(call)) - {session.session_id for session in active}
        self._drop(call, gone)
        return active

    async def stack_entries(self, call: ToolCall) -> list[StackEntry]:
        """Read the stack as replies show it."""
        entries = [
            StackEntry(workflow=session.workflow, step=session.current_step_id) for session in await self.stack(call)
        ]
        self._seen[call.connection] = entries
        return entries

    def last_seen(self, call: ToolCall) -> list[StackEntry]:
        """Give the stack as it was last read, for the log."""
        return self._seen.get(call.connection, [])

    async def top(self, call: ToolCall) -> Session | None:
        """Read the session on top of the stack."""
        stack = await self.stack(call)
        return stack[-1] if stack else None

    async def target(self, call: ToolCall, session_id: str | None) -> Target:
        """Find the session that a call means; an active one that is not on the stack is adopted.

        Raises:
            NoActiveSession: None was named and the stack is empty.
            UnknownSession: There is none of that id.
        """
        if not session_id:
            top = await self.top(call)
            if top is None:
                raise NoActiveSession("No active workflow session")
            return Target(top, adopted=False)
        session = await self.load(session_id)
        if session is None:
            raise UnknownSession(f"Session {session_id!r} not found")
        if not session.is_active or session_id in self._ids(call):
            return Target(session, adopted=False)
        await self._adopt(call, session)
        return Target(session, adopted=True)

    def remove(self, call: ToolCall, session_id: str) -> None:
        """Take a session that has ended off the stack, wherever it stands."""
        self._drop(call, {session_id})
        self._ended[call.connection] = session_id

    async def last_ended(self, call: ToolCall) -> Session | None:
        """Read the session that ended last on this connection."""
        session_id = self._ended.get(call.connection)
        return await self._read(call, session_id) if session_id else None

    def damage_met(self, call: ToolCall) -> list[str]:
        """Tell, once, which damaged sessions were met while stacks of this connection were read."""
        return self._damaged.pop(call.connection, [])

    async def active(self) -> list[SessionSummary]:
        """List the sessions of this project that can be resumed, the last changed first."""
        return await (await self.store()).find(status=SessionStatus.ACTIVE, limit=sys.maxsize)

    async def damaged(self) -> list[str]:
        """Name the files that could not be read and were set aside."""
        return await (await self.store()).damaged()

    async def _adopt(self, call: ToolCall, session: Session) -> None:
        parents = [
            parent for parent in session.parents if (found := await self._read(call, parent)) and found.is_active
        ]
        self._push(call.connection, [*parents, session.session_id])

    async def _read(self, call: ToolCall, session_id: str) -> Session | None:
        """Read one session among others: a broken one is told of, and hides none of them."""
        try:
            return await self.load(session_id)
        except CorruptSession as error:
            self._damaged.setdefault(call.connection, []).append(error.message)
            return None

    def _ids(self, call: ToolCall) -> list[str]:
        return self._stacks.get(call.connection, [])

    def _push(self, connection: Connection, session_ids: list[str]) -> None:
        """Put sessions on top; what is already there keeps its place."""
        stack = self._stacks.setdefault(connection, [])
        stack.extend(session_id for session_id in session_ids if session_id not in stack)

    def _drop(self, call: ToolCall, session_ids: set[str]) -> None:
        # In place and by filter: a call that runs beside this one may hold or extend the same list.
        stack = self._ids(call)
        stack[:] = [session_id for session_id in stack if session_id not in session_ids]
