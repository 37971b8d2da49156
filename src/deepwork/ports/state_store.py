"""Where sessions are kept."""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Hashable, Mapping, Sequence
from threading import Lock
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from deepwork.errors import CorruptSession, StorageError
from deepwork.models.sessions import Session, SessionStatus, SessionSummary

T = TypeVar("T")


class SessionReader(Protocol):
    """Reads sessions in the thread that asks, for a call that reads several things in one thread."""

    def load(self, session_id: str) -> Session | None:
        """Read a session; see `StateStore.load`."""

    def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read the summaries of some sessions; see `StateStore.peek`."""


class SessionCache:
    """The active sessions that a store has read or written last, for as long as they are stored with the same stamp.

    Args:
        size: At most so many are kept.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._sessions: dict[str, tuple[Hashable, Session]] = {}
        self._lock = Lock()

    def get(self, session_id: str, stamp: Hashable) -> Session | None:
        """Return a session if it was kept with this stamp, else None."""
        cached_stamp, session = self._sessions.get(session_id, (None, None))
        return session if cached_stamp == stamp else None

    def put(self, session_id: str, stamp: Hashable, session: Session) -> None:
        """Keep an active session, and forget the oldest if there are too many. Sessions that are over are hardly read.

        Args:
            session_id: Its id.
            stamp: Differs after every change of the stored session.
            session: The session.
        """
        with self._lock:
            self._sessions.pop(session_id, None)
            if session.is_active:
                self._sessions[session_id] = stamp, session
            if len(self._sessions) > self._size:
                del self._sessions[next(iter(self._sessions))]


class StateStore(ABC):
    """Keeps the sessions of one workspace. An async context manager: entered before the first call.

    Several servers may use one store at the same time; `revision` is what keeps them apart.
    """

    @abstractmethod
    async def load(self, session_id: str) -> Session | None:
        """Read a session; None if it does not exist.

        Raises:
            UnknownSession: It belongs to another workspace, as in a store that several machines share; the error names
                that machine and folder.
            CorruptSession: It exists and cannot be read.
            StorageError: The store did not answer.
        """

    @abstractmethod
    async def save(self, session: Session, *, expected: int | None) -> int:
        """Write a session durably, with its new history entries, in one transaction.

        Args:
            session: The session to store; its own `revision` is not looked at.
            expected: The revision on which the change is based; None for a session that is new.

        Returns:
            The new revision.

        Raises:
            StaleSession: The stored revision is another one, or the session is archived; nothing was written.
            StorageError: The write failed; nothing was changed.
        """

    @abstractmethod
    async def find(
        self, *, status: SessionStatus | None = None, before: str | None = None, limit: int = 10
    ) -> list[SessionSummary]:
        """List sessions, the last changed first.

        Args:
            status: Only sessions of this status.
            before: Only sessions last changed before this time (`updated_at` of a summary).
            limit: At most this many.
        """

    async def other_active(self, session: Session) -> SessionSummary | None:
        """Find the active session that was changed last of the same workflow and principal as another one.

        It is called whenever a workflow has been started, with the new session. So a store should not read all
        sessions for it if it can avoid it.

        Raises:
            StorageError: The store did not answer.
        """
        active = await self.find(status=SessionStatus.ACTIVE, limit=sys.maxsize)
        return next(filter(session.shares_workflow_with, active), None)

    async def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        """Read the summaries of some sessions, in the order of their ids.

        Missing and archived sessions are left out, and a damaged one gives its error. Every reply shows a whole stack,
        so a store should not read whole sessions for this if it can avoid it.

        Raises:
            StorageError: The store did not answer.
        """
        summaries: list[SessionSummary | CorruptSession] = []
        for session_id in session_ids:
            try:
                session = await self.load(session_id)
            except CorruptSession as error:
                summaries.append(error)
            else:
                summaries += [session.summary()] if session else []
        return summaries

    def reader(self) -> SessionReader:
        """Return a reader for other threads than that of the event loop. This is called in the event loop.

        By default it has the event loop ask this store. A store that reads by itself in any thread spares every call
        of an agent some turns between threads.
        """
        return _LoopReader(self, asyncio.get_running_loop())

    async def stamps(self) -> Mapping[str, Hashable]:
        """Return a stamp of each session, by its id, that differs after every change of the session.

        It is called every second while a page is open, so a store should read no sessions for it.

        Raises:
            StorageError: The store did not answer.
        """
        return {summary.session_id: summary.updated_at for summary in await self.find(limit=sys.maxsize)}

    async def archive(self, session_id: str) -> None:
        """Put a finished session where `load` and `find` no longer see it.

        Raises:
            StorageError: This store cannot do it, or failed.
        """
        raise StorageError(f"{type(self).__name__} has no archive")

    async def archived(self) -> list[SessionSummary]:
        """List the archived sessions, the last changed first; a store without an archive has none."""
        return []

    async def damaged(self) -> list[str]:
        """Name stored sessions that could not be read, whether they were set aside or not."""
        return []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class _LoopReader:
    """Has an event loop ask a store, and waits for its answer."""

    def __init__(self, store: StateStore, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop

    def load(self, session_id: str) -> Session | None:
        return self._answer(self._store.load(session_id))

    def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        return self._answer(self._store.peek(session_ids))

    def _answer(self, question: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(question, self._loop).result()
