"""Hypothesis state machines: long runs of calls in any order, compared with a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from deepwork.api import Session, SessionStatus, SessionSummary, StateStore
from deepwork.errors import StaleSession
from deepwork.testing.strategies import sessions, times

IDS = st.sampled_from(["s1", "s2", "s3", "s4"])


class StoreMachine(RuleBasedStateMachine):
    """Does the same to a store and to a dictionary, in any order, and compares them.

    When it fails, hypothesis makes the failure small, by up to five minutes of further runs, before it is shown. To see
    the first one at once, leave that out: `settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])`.

    Override `place`, and let pytest collect the test case:

        class AcmeMachine(StoreMachine):
            def place(self):
                return partial(AcmeStore, tempfile.mkdtemp())

        TestAcmeMachine = AcmeMachine.TestCase

    Attributes:
        survives: Whether what was saved is still there when the store is reopened.
    """

    survives = True

    def place(self) -> Callable[[], StateStore]:
        """Return a function that opens a store, always on the same data. Each call of `place` begins without data."""
        raise NotImplementedError("override the method `place`")

    @initialize()
    def begin(self) -> None:
        """Open the store."""
        self._saved: dict[str, Session] = {}
        self._gone: set[str] = set()
        self._end = ExitStack()
        self._portal: BlockingPortal = self._end.enter_context(start_blocking_portal())
        self._open = self.place()
        self._enter()

    @rule(session=sessions(IDS))
    def save(self, session: Session) -> None:
        """Save on the stored revision."""
        if session.session_id in self._gone:
            return  # its id stays taken
        stored = self._saved.get(session.session_id)
        revision = self._call(self._store.save, session, expected=stored.revision if stored else None)
        self._saved[session.session_id] = session.model_copy(update={"revision": revision})

    @rule(session=sessions(IDS), expected=st.none() | st.integers(0, 20))
    def save_on_something_else(self, session: Session, expected: int | None) -> None:
        """Save on a revision that is not the stored one."""
        stored = self._saved.get(session.session_id)
        if expected == (stored.revision if stored else None) or session.session_id in self._gone:
            return
        with pytest.raises(StaleSession):
            self._call(self._store.save, session, expected=expected)

    @rule(session_id=IDS)
    def load(self, session_id: str) -> None:
        """Load a session, which may not be there."""
        assert self._call(self._store.load, session_id) == self._saved.get(session_id)

    @rule(session_ids=st.lists(IDS, unique=True))
    def peek(self, session_ids: list[str]) -> None:
        """Read the summaries of some sessions, in the order of their ids."""
        there = [self._saved[session_id].summary() for session_id in session_ids if session_id in self._saved]
        assert list(self._call(self._store.peek, session_ids)) == there

    @rule(status=st.none() | st.sampled_from(SessionStatus), before=st.none() | times, limit=st.integers(1, 5))
    def find(self, status: SessionStatus | None, before: str | None, limit: int) -> None:
        """List sessions; of those changed at the same time any may come first."""
        listed: list[SessionSummary] = self._call(self._store.find, status=status, before=before, limit=limit)
        fitting = [
            summary
            for summary in (session.summary() for session in self._saved.values())
            if status in (None, summary.status) and (before is None or summary.updated_at < before)
        ]
        fitting.sort(key=lambda summary: summary.updated_at, reverse=True)
        assert [summary.updated_at for summary in listed] == [summary.updated_at for summary in fitting[:limit]]
        assert all(summary in fitting for summary in listed)
        assert len({summary.session_id for summary in listed}) == len(listed)

    @precondition(lambda self: type(self._store).archive is not StateStore.archive)
    @rule(session_id=IDS)
    def archive(self, session_id: str) -> None:
        """Archive a session that is there."""
        if self._saved.pop(session_id, None):
            self._gone.add(session_id)
            self._call(self._store.archive, session_id)

    @rule()
    def reopen(self) -> None:
        """Close the store, and open it again."""
        self._leave()
        if not self.survives:
            self._saved.clear()
        self._enter()

    @invariant()
    def all_is_there(self) -> None:
        """Nothing is lost, and nothing comes back."""
        for session_id, stored in self._call(self._load_all).items():
            assert stored == self._saved.get(session_id)

    def teardown(self) -> None:
        """Close the store."""
        if hasattr(self, "_store"):
            self._leave()
        if hasattr(self, "_end"):
            self._end.close()

    def _enter(self) -> None:
        self._store: StateStore = self._call(self._open().__aenter__)

    def _leave(self) -> None:
        self._call(self._store.__aexit__, None, None, None)

    async def _load_all(self) -> dict[str, Session | None]:
        return {session_id: await self._store.load(session_id) for session_id in [*self._saved, *self._gone]}

    def _call(self, method: Any, *arguments: Any, **named: Any) -> Any:
        async def call() -> Any:
            return await method(*arguments, **named)

        return self._portal.call(call)
