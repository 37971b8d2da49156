"""Access to sessions: read from the store, changed by one loop, and found by what a call names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

import anyio

from deepwork.errors import CorruptSession, NoActiveSession, StaleSession, UnknownSession
from deepwork.models.replies import StackEntry
from deepwork.models.sessions import Session, SessionSummary, is_session_id
from deepwork.models.standing import Standing
from deepwork.paths.workspace import Workspace
from deepwork.ports.call import LOCAL, Connection, ToolCall
from deepwork.ports.records import StateStoreSpec
from deepwork.ports.state_store import SessionReader, StateStore
from deepwork.programs.work_queue import WorkQueue
from deepwork.sessions.definition import upgraded_alike
from deepwork.sessions.stacks import ConnectionState, Workers
from deepwork.sessions.standing import standing_of
from deepwork.text import one_line

# Each lost race means that another writer got through, so a call that loses this often is stuck elsewhere.
MAX_RACES = 20
# The hook of a call comes right after it, so few calls have to be remembered.
MAX_CALLS = 1_000

_utc_now = partial(datetime.now, UTC)

ResultT = TypeVar("ResultT")
Change = Callable[[Session], Session]


@dataclass(frozen=True)
class View:
    """The sessions of a stack as a call has read them.

    Attributes:
        ids: Those that were looked for.
        summaries: Those that there are.
        damaged: Errors of damaged ones, until they are told.
    """

    ids: list[str]
    summaries: list[SessionSummary]
    damaged: list[CorruptSession]


@dataclass(frozen=True)
class Target(Generic[ResultT]):
    """The session that a call means, what was made of it in the thread that read it, and the stack beside it."""

    session: Session
    result: ResultT
    view: View


class StateManager:
    """The sessions of all connections. Nothing is kept in memory but what a connection has on its stack.

    Attributes:
        workspace: The project whose sessions they are.
        clock: Returns the time.
    """

    def __init__(self, spec: StateStoreSpec, workspace: Workspace, *, clock: Callable[[], datetime] = _utc_now) -> None:
        self._spec = spec
        self.workspace = workspace
        self.clock = clock
        self._exit_stack = AsyncExitStack()
        self._opening = anyio.Lock()
        self._store: StateStore | None = None
        self._connections: WeakKeyDictionary[Connection, ConnectionState] = WeakKeyDictionary()
        self._workers = Workers()
        self._sessions_of_calls: dict[str, str] = {}
        self._work = WorkQueue("deepwork-calls")

    @property
    def store_name(self) -> str:
        """The name that selects the store."""
        return self._spec.name

    async def store(self) -> StateStore:
        """Return the store, opened at its first use."""
        if self._store is None:
            async with self._opening:
                if self._store is None:
                    self._store = await self._exit_stack.enter_async_context(self._spec.open(self.workspace))
        return self._store

    async def close(self) -> None:
        """Close the store; the next use opens it again."""
        self._store = None
        await self._exit_stack.aclose()

    def connection(self, call: ToolCall) -> ConnectionState:
        """Return what the connection of a call remembers."""
        return self._connections.setdefault(call.connection, ConnectionState())

    def now(self) -> str:
        """Return the time as histories have it."""
        return self.clock().isoformat(timespec="microseconds")

    async def blocking(self, work: Callable[[], ResultT]) -> ResultT:
        """Do blocking work of a call in the threads of calls: job sources and reviews that hang have others."""
        return await self._work.run(work)

    # Reading and changing

    async def reload(self, session_id: str) -> Session:
        """Read a session again that was there before.

        Raises:
            UnknownSession: It has gone.
        """
        session = await (await self.store()).load(session_id)
        if session is None:
            raise UnknownSession(f"Session {session_id!r} not found: it was removed meanwhile")
        return session

    async def update(self, session: Session, change: Change) -> Session:
        """Apply a pure change to a session that was just read, and save it.

        Args:
            session: As it is stored.
            change: Returns the session as it is to be; the session itself saves nothing. Called again, with the session
                that is stored then, when another writer saved first.

        Raises:
            StaleSession: Other writers saved first, again and again.
            StateError: The session has gone, or could not be saved.
        """
        updated, _ = await self._update(session, lambda current: (change(current), None), lambda stored: stored)
        return updated

    async def update_upgraded(
        self, session: Session, change: Callable[[Session], tuple[Session, ResultT]]
    ) -> tuple[Session, ResultT]:
        """Do the same with a session that was upgraded, and return what the change returns beside it.

        Raises:
            StateError: Its definition was edited meanwhile, or another of `update`.
        """
        return await self._update(session, change, lambda stored: upgraded_alike(stored, session))

    async def _update(
        self,
        session: Session,
        change: Callable[[Session], tuple[Session, ResultT]],
        upgrade: Callable[[Session], Session],
    ) -> tuple[Session, ResultT]:
        store = await self.store()
        for _ in range(MAX_RACES):
            changed, result = change(session)
            if changed is session:
                return session, result
            try:
                return await _save(store, changed, expected=session.revision), result
            except StaleSession:
                # Another writer saved first; decide again on the stored session.
                session = upgrade(await self.reload(session.session_id))
        raise StaleSession(f"Session {session.session_id!r} is being changed all the time; call again")

    async def create(self, call: ToolCall, session: Session) -> Session:
        """Save a new session and put it on top of the stack, its parents below it if they are not there yet."""
        session = await _save(await self.store(), session, expected=None)
        await self._put_on_stack(call, session)
        self._workers.take_up(session.session_id, call.connection)
        return session

    # Which session a call means

    async def named(self, call: ToolCall, session_id: str) -> Session:
        """Read a session that must exist. Sessions of other principals are unknown.

        Raises:
            UnknownSession: No session has that id.
        """
        try:
            session = await (await self.store()).load(session_id) if is_session_id(session_id) else None
        except UnknownSession as error:
            raise _as_told(call, session_id, error) from None
        if session is None or session.principal != call.principal:
            raise _not_found(session_id)
        return session

    async def target(
        self, call: ToolCall, session_id: str | None, then: Callable[[Session], ResultT]
    ) -> Target[ResultT]:
        """Find the target session of a call; an active session from outside of the stack is adopted.

        All blocking work is done in one thread: the session and the stack are read, and `then` is called with the
        session.

        Raises:
            NoActiveSession: None was named and the stack is empty.
            UnknownSession: No session has that id.
            CorruptSession: None was named, and a session of the stack is damaged: it may be the intended one.
        """
        connection = self.connection(call)
        reader = (await self.store()).reader()
        read = partial(_read_target, reader, call.principal, session_id, [*connection.stack], then)
        try:
            view, target = await self._work.run(read)
        except UnknownSession as error:
            raise _as_told(call, session_id or "", error) from None
        if not session_id:
            return await self._top_target(call, view, target, then)
        if target is None:
            raise _not_found(session_id)
        if session_id not in connection.stack and target.session.is_active:
            await self._put_on_stack(call, target.session)
            connection.unbriefed.add(session_id)
            if self._workers.take_up(session_id, call.connection):
                connection.remarks.append(_taken_over(target.session))
        return target

    async def _top_target(
        self, call: ToolCall, view: View, target: Target[ResultT] | None, then: Callable[[Session], ResultT]
    ) -> Target[ResultT]:
        stack = await self.stack(call, view=view)
        connection = self.connection(call)
        if connection.damaged:
            errors = ". ".join(connection.damaged)
            connection.damaged.clear()
            raise CorruptSession(errors, hint="Nothing else was changed.")
        if not stack:
            raise NoActiveSession("No active workflow session")
        if target and target.session.session_id == stack[-1].session_id:
            return target
        return await self.target(call, stack[-1].session_id, then)  # a call beside this one has changed the stack

    async def find(self, call: ToolCall, session_id: str) -> Session | None:
        """Read one session among several; None if it is missing or broken, which the next reply tells."""
        if not is_session_id(session_id):  # from `parents` of a session file that was edited
            return None
        try:
            session = await (await self.store()).load(session_id)
        except CorruptSession as error:
            self.connection(call).damaged.append(error.message)
            return None
        except UnknownSession:  # of another workspace
            return None
        return session if session and session.principal == call.principal else None

    def note_call(self, call: ToolCall, session: Session) -> None:
        """Remember which session a call was about, under the client's id of the call."""
        while len(self._sessions_of_calls) >= MAX_CALLS:
            self._sessions_of_calls.pop(next(iter(self._sessions_of_calls)))
        if call.id:
            self._sessions_of_calls[call.id] = session.session_id

    def session_of(self, call_id: str) -> str | None:
        """Return which session one of the last calls to this process was about; None if that is not known."""
        return self._sessions_of_calls.get(call_id)

    # The stack

    async def stack(
        self, call: ToolCall, session: Session | None = None, view: View | None = None
    ) -> list[SessionSummary]:
        """Read the active sessions of the connection, the newest last, and drop sessions that have ended elsewhere.

        The session, and those of the view, were read or saved a moment ago, and are not read again.
        """
        connection = self.connection(call)
        # Only what is on the stack now: a call that runs beside this one may push meanwhile.
        ids = [*connection.stack]
        summaries = await self._summaries_of(call, ids, session, view)
        active, gone = [], set()
        for session_id in ids:
            summary = summaries.get(session_id)
            if summary and summary.is_active:
                active.append(summary)
                continue
            gone.add(session_id)
            if summary and (ended := await self.find(call, session_id)):
                connection.last_ended = session_id
                connection.remarks.append(_dropped_out(ended))
        if gone:
            connection.drop(gone)
        return active

    async def stack_entries(
        self, call: ToolCall, session: Session | None = None, view: View | None = None
    ) -> list[StackEntry]:
        """Read the stack as replies show it."""
        stack = await self.stack(call, session, view)
        entries = [StackEntry(workflow=summary.workflow, step=summary.step_id) for summary in stack]
        self.connection(call).entries = entries
        return entries

    async def top(self, call: ToolCall) -> Session | None:
        """Read the session on top of the stack."""
        stack = await self.stack(call)
        return await self.find(call, stack[-1].session_id) if stack else None

    async def last_ended(self, call: ToolCall, *, default: str | None = None) -> Session | None:
        """Read the session that ended last on this connection; if none has, the default."""
        session_id = self.connection(call).last_ended or default
        return await self.find(call, session_id) if session_id else None

    # Listings

    async def summaries(self, call: ToolCall) -> list[SessionSummary]:
        """List the caller's sessions, the last changed first; none to a caller that may not list any."""
        if not call.may_list:
            return []
        summaries = await (await self.store()).find(limit=sys.maxsize)
        return [summary for summary in summaries if call.caller.may_see(summary.principal)]

    async def damaged(self, call: ToolCall) -> list[str]:
        """Return the names of unreadable files that were set aside; their owners can no longer be known."""
        if not call.may_list or call.principal != LOCAL:
            return []
        return await (await self.store()).damaged()

    async def _put_on_stack(self, call: ToolCall, session: Session) -> None:
        """Put a session on top, and below it those of its parents that are active."""
        connection = self.connection(call)
        parents = []
        for parent_id in session.parents:
            if parent_id not in connection.stack:
                parent = await self.find(call, parent_id)
                if parent and parent.is_active:
                    parents.append(parent_id)
        connection.push([*parents, session.session_id])
        connection.unbriefed.update(parents)

    async def _summaries_of(
        self, call: ToolCall, ids: list[str], session: Session | None, view: View | None
    ) -> dict[str, SessionSummary]:
        summaries = {session.session_id: session.summary()} if session else {}
        items: list[SessionSummary | CorruptSession] = []
        if view:
            items = [*view.summaries, *view.damaged]
            view.damaged.clear()
        known = {*summaries, *(view.ids if view else ())}
        missing = [session_id for session_id in ids if session_id not in known]
        if missing:
            items += await (await self.store()).peek(missing)
        for item in items:
            if isinstance(item, CorruptSession):
                self.connection(call).damaged.append(item.message)
            elif item.principal == call.principal:
                summaries.setdefault(item.session_id, item)
        return summaries


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


async def standing_in(store: StateStore, summary: SessionSummary) -> Standing | None:
    """Return where a listed session stands: by its head, or else from all of it; None if it cannot be read."""
    if summary.standing:
        return summary.standing
    with suppress(CorruptSession):
        session = await store.load(summary.session_id)
        return standing_of(session) if session else None
    return None


async def _save(store: StateStore, session: Session, *, expected: int | None) -> Session:
    """Save a session with where it stands; return it as it is stored."""
    standing = standing_of(session, (expected or 0) + 1)
    session = session.model_copy(update={"standing": standing})
    revision = await store.save(session, expected=expected)
    return session.model_copy(update={"revision": revision})


def _read_target(
    reader: SessionReader, principal: str, session_id: str | None, stack: list[str], then: Callable[[Session], ResultT]
) -> tuple[View, Target[ResultT] | None]:
    """Read the stack, and the named session, else its top; None if the caller has no such session."""
    ids = [other for other in stack if other != session_id]
    view = View(ids, [], [])
    for item in reader.peek(ids) if ids else ():
        if isinstance(item, CorruptSession):
            view.damaged.append(item)
        else:
            view.summaries.append(item)
    if session_id:
        session = reader.load(session_id) if is_session_id(session_id) else None
    else:
        active = [
            summary.session_id for summary in view.summaries if summary.is_active and summary.principal == principal
        ]
        try:
            session = reader.load(active[-1]) if active else None
        except CorruptSession as error:
            view.damaged.append(error)
            return view, None
    if session is None or session.principal != principal:
        return view, None
    return view, Target(session, then(session), view)


def _not_found(session_id: str) -> UnknownSession:
    """Return the error for an unknown id, and for a session of another principal, which must look the same."""
    return UnknownSession(f"Session {session_id!r} not found")


def _as_told(call: ToolCall, session_id: str, error: UnknownSession) -> UnknownSession:
    """Return the error of a store for who called: only its owner is told where a session is."""
    owner = LOCAL if error.principal is None else error.principal
    return error if call.caller.may_see(owner) else _not_found(session_id)


def _taken_over(session: Session) -> str:
    return f"Session {session.session_id!r} was begun on another connection. Its goal: {one_line(session.goal)}"


def _dropped_out(session: Session) -> str:
    reason = f" ({one_line(session.abort_reason)})" if session.abort_reason else ""
    name = one_line(session.workflow)
    return f"{name}, session {session.session_id!r}, is no longer on the stack: {session.status}{reason}."
