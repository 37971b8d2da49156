"""Peeking: the summaries of some sessions, which every reply asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from deepwork.api import SessionStatus, SessionSummary, StateStore
from deepwork.errors import CorruptSession
from deepwork.testing.contracts.state_store.store import StoreContract
from deepwork.testing.samples import a_session, at

HOSTILE_IDS = (
    "",
    ".",
    "..",
    "../s1",
    "a/b",
    "/etc/passwd",
    "s1\0",
    "s'; DROP TABLE sessions; --",
    "%",
    "é",
    "x" * 5000,
)
TEXT = "Größe, 数据, 🧭, \u202eright to left, e\u0301, 'quotes\" \\ %s {} \r\n\ttab"


class PeekContract(StoreContract):
    """Peeking: the summaries of some sessions, which every reply asks for."""

    async def test_peek_gives_the_summaries_of_the_sessions_that_are_there(self, store: StateStore) -> None:
        sessions = {
            name: a_session(name, goal=f"{TEXT} {name}", updated_at=at(minute), current_step_id="b")
            for name, minute in (("s1", 3), ("s2", 1), ("s3", 2))
        }
        for session in sessions.values():
            await store.save(session, expected=None)
        for asked in (["s1"], ["s2", "s1"], ["s3", "s1", "s2"]):
            assert _by_id(await store.peek(asked)) == {name: sessions[name].summary() for name in asked}

    async def test_peek_leaves_out_what_is_not_there(self, store: StateStore) -> None:
        assert list(await store.peek(["s1"])) == []
        await store.save(a_session("s1"), expected=None)
        assert list(await store.peek([])) == []
        assert list(_by_id(await store.peek(["s2", "s1", *HOSTILE_IDS]))) == ["s1"]

    async def test_peek_sees_a_change_at_once(self, store: StateStore) -> None:
        revision = await store.save(a_session("s1"), expected=None)
        assert list(_by_id(await store.peek(["s1"]))) == ["s1"]
        changed = a_session("s1", status=SessionStatus.ABORTED, updated_at=at(1))
        await store.save(changed, expected=revision)
        assert _by_id(await store.peek(["s1"])) == {"s1": changed.summary()}

    async def test_peek_keeps_the_order_in_which_it_was_asked(self, store: StateStore) -> None:
        for minute, session_id in enumerate(("s1", "s2", "s3")):
            await store.save(a_session(session_id, updated_at=at(minute)), expected=None)
        for asked in (["s2", "s3", "s1"], ["s3", "s1"], ["s1", "s3", "s2"]):
            assert list(_by_id(await store.peek(asked))) == asked

    async def test_peek_gives_the_error_of_a_damaged_session(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        await store.save(a_session("s1"), expected=None)
        await store.save(a_session("s2"), expected=None)
        await spoil("s1")
        items = list(await store.peek(["s1", "s2"]))
        assert [type(item) for item in items] == [CorruptSession, SessionSummary]
        assert items[1] == a_session("s2").summary()


def _by_id(items: Iterable[SessionSummary | CorruptSession]) -> dict[str, SessionSummary]:
    """Return summaries by their ids, in their order; each id once, and no error among them."""
    summaries = [item for item in items if isinstance(item, SessionSummary)]
    assert len(summaries) == len(list(items)), "peek gave something else than summaries of sessions that are whole"
    by_id = {summary.session_id: summary for summary in summaries}
    assert len(by_id) == len(summaries), "peek gave a session twice"
    return by_id
