"""The sessions of all connections: a stack of ids for each, their state always read from the store."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from weakref import WeakKeyDictionary

import anyio

from deepwork.errors import CorruptSession, NoActiveSession, UnknownSession
from deepwork.models.replies import StackEntry
from deepwork.models.sessions import Session, SessionSummary
from deepwork.ports.call import LOCAL, Connection, ToolCall
from deepwork.ports.records import StateStoreSpec
from deepwork.ports.state_store import StateStore
from deepwork.workspace import Workspace


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
        self._dropped: WeakKeyDictionary[Connection, list[str]] = WeakKeyDictionary()
        self._untold: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()

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
        """Read a session, whatever its state and whoever asks."""
        return await (await self.store()).load(session_id)

    async def reload(self, session_id: str) -> Session:
        """Read a session again that was there before.

        Raises:
            UnknownSession: It has gone.
        """
        session = await self.load(session_id)
        if session is None:
            raise UnknownSession(f"Session {session_id!r} not found: it was removed meanwhile")
        return session

    async def save(self, session: Session) -> Session:
        """Save a change of a session that was read before.

        Raises:
            StaleSession: It was changed by somebody else meanwhile.
        """
        revision = await (await self.store()).save(session, expected=session.revision)
        return session.model_copy(update={"revision": revision})

    async def create(self, call: ToolCall, session: Session) -> Session:
        """Save a new session and put it on top of the stack, its parents below it if they are not there yet."""
        revision = await (await self.store()).save(session, expected=None)
        await self._put_on_stack(call, session)
        return session.model_copy(update={"revision": revision})

    async def stack(self, call: ToolCall, known: Session | None = None) -> list[SessionSummary]:
        """Read the active sessions of the connection, the newest last; `known` is one that was read a moment ago."""
        # Only what was there before: a call that runs beside this one may push meanwhile.
        ids = [*self._ids(call)]
        found = {known.session_id: known.summary()} if known else {}
        if others := [one for one in ids if one not in found]:
            for one in await (await self.store()).peek(others):
                if isinstance(one, CorruptSession):
                    self._damaged.setdefault(call.connection, []).append(one.message)
                elif one.principal == call.principal:
                    found[one.session_id] = one
        active = []
        for session_id in ids:
            summary = found.get(session_id)
            if summary and summary.is_active:
                active.append(summary)
            elif summary and (session := await self._read(call, session_id)):
                self._ended[call.connection] = session_id
                self._dropped.setdefault(call.connection, []).append(_dropped_out(session))
        self._drop(call, set(ids) - {summary.session_id for summary in active})
        return active

    async def stack_entries(self, call: ToolCall, known: Session | None = None) -> list[StackEntry]:
        """Read the stack as replies show it."""
        stack = await self.stack(call, known)
        entries = [StackEntry(workflow=summary.workflow, step=summary.step_id) for summary in stack]
        self._seen[call.connection] = entries
        return entries

    def last_seen(self, call: ToolCall) -> list[StackEntry]:
        """Give the stack as it was last read, for the log."""
        return self._seen.get(call.connection, [])

    async def top(self, call: ToolCall) -> Session | None:
        """Read the session on top of the stack."""
        stack = await self.stack(call)
        return await self._read(call, stack[-1].session_id) if stack else None

    async def named(self, call: ToolCall, session_id: str) -> Session:
        """Read a session that must exist. Those of other principals are unknown.

        Raises:
            UnknownSession: There is none of that id.
        """
        session = await self.load(session_id)
        if session is None or session.principal != call.principal:
            raise UnknownSession(f"Session {session_id!r} not found")
        return session

    async def target(self, call: ToolCall, session_id: str | None) -> Session:
        """Find the session that a call means; an active one that is not on the stack is adopted.

        Raises:
            NoActiveSession: None was named and the stack is empty.
            UnknownSession: There is none of that id.
            CorruptSession: None was named, and a session of the stack is damaged: it may be the one that was meant.
        """
        if not session_id:
            top = await self.top(call)
            if damaged := self._damaged.pop(call.connection, None):
                raise CorruptSession(". ".join(damaged), hint="Nothing else was changed.")
            if top is None:
                raise NoActiveSession("No active workflow session")
            return top
        session = await self.named(call, session_id)
        if session.is_active and session_id not in self._ids(call):
            await self._put_on_stack(call, session)
            self._untold.setdefault(call.connection, set()).add(session_id)
        return session

    def is_first_refusal(self, call: ToolCall, session_id: str) -> bool:
        """Say, once for each adopted session, whether its agent has not been told yet where it is."""
        untold = self._untold.get(call.connection, set())
        is_first = session_id in untold
        untold.discard(session_id)
        return is_first

    def remove(self, call: ToolCall, session_id: str) -> None:
        """Take a session that has ended off the stack, wherever it stands."""
        self._drop(call, {session_id})
        self._ended[call.connection] = session_id

    async def last_ended(self, call: ToolCall, *, otherwise: str | None = None) -> Session | None:
        """Read the session that ended last on this connection; if none has, the one that is named."""
        session_id = self._ended.get(call.connection, otherwise)
        return await self._read(call, session_id) if session_id else None

    def remarks(self, call: ToolCall) -> list[str]:
        """Tell, once, which sessions of this connection were found damaged or had ended elsewhere."""
        return [*self._damaged.pop(call.connection, []), *self._dropped.pop(call.connection, [])]

    async def summaries(self, call: ToolCall) -> list[SessionSummary]:
        """List the caller's sessions, the last changed first; none to a caller that may not list any."""
        if not call.may_list:
            return []
        found = await (await self.store()).find(limit=sys.maxsize)
        return [summary for summary in found if summary.principal == call.principal]

    async def damaged(self, call: ToolCall) -> list[str]:
        """Name the files that could not be read and were set aside; nobody knows any more whose they were."""
        if not call.may_list or call.principal != LOCAL:
            return []
        return await (await self.store()).damaged()

    async def _put_on_stack(self, call: ToolCall, session: Session) -> None:
        """Put a session on top, below it those of its parents that are active; what is already there stays there."""
        missing = [parent for parent in session.parents if parent not in self._ids(call)]
        parents = [parent for parent in missing if (found := await self._read(call, parent)) and found.is_active]
        stack = self._stacks.setdefault(call.connection, [])
        stack.extend(one for one in [*parents, session.session_id] if one not in stack)
        self._untold.setdefault(call.connection, set()).update(parents)

    async def _read(self, call: ToolCall, session_id: str) -> Session | None:
        """Read one session among others: a broken one is told of, and hides none of them."""
        try:
            session = await self.load(session_id)
        except CorruptSession as error:
            self._damaged.setdefault(call.connection, []).append(error.message)
            return None
        return session if session and session.principal == call.principal else None

    def _ids(self, call: ToolCall) -> list[str]:
        return self._stacks.get(call.connection, [])

    def _drop(self, call: ToolCall, session_ids: set[str]) -> None:
        # In place and by filter: a call that runs beside this one may hold or extend the same list.
        stack = self._ids(call)
        stack[:] = [session_id for session_id in stack if session_id not in session_ids]


def _dropped_out(session: Session) -> str:
    reason = f" ({session.abort_reason})" if session.abort_reason else ""
    return f"{session.workflow}, session {session.session_id!r}, is no longer on the stack: {session.status}{reason}."
