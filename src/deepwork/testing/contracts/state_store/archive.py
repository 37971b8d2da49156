"""Archives, for stores that have one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from deepwork.api import SessionStatus, StateStore
from deepwork.errors import StaleSession
from deepwork.testing.contracts.state_store.store import (
    StoreContract,
    archive_quietly,
    list_ids,
    load_plain,
    spoil_and_load,
)
from deepwork.testing.samples import a_session


class ArchiveContract(StoreContract):
    """Archives, for stores that have one."""

    async def test_an_archived_session_is_neither_loaded_nor_found(self, store: StateStore) -> None:
        _needs_archive(store)
        await store.save(a_session(status=SessionStatus.COMPLETED), expected=None)
        await store.archive("s1")
        assert await store.load("s1") is None
        assert await list_ids(store) == []
        assert await list_ids(store, status=SessionStatus.COMPLETED) == []
        assert list(await store.peek(["s1"])) == []

    async def test_archiving_an_unknown_session_does_nothing(self, store: StateStore) -> None:
        _needs_archive(store)
        await store.save(a_session(), expected=None)
        await store.archive("s2")
        await store.archive("s2")
        assert await list_ids(store) == ["s1"]
        assert await load_plain(store) == a_session()

    async def test_archiving_leaves_other_sessions(self, store: StateStore) -> None:
        _needs_archive(store)
        for session_id in ("s1", "s2", "s11"):
            await store.save(a_session(session_id, status=SessionStatus.COMPLETED), expected=None)
        await store.archive("s1")
        assert sorted(await list_ids(store)) == ["s11", "s2"]
        assert await load_plain(store, "s11") == a_session("s11", status=SessionStatus.COMPLETED)

    async def test_an_archived_session_is_listed_as_such(self, store: StateStore) -> None:
        _needs_archive(store)
        if type(store).archived is StateStore.archived:
            pytest.skip(f"{type(store).__name__} has no `archived`: archived sessions are named nowhere")
        for session_id in ("s1", "s2"):
            await store.save(a_session(session_id, status=SessionStatus.COMPLETED), expected=None)
        await store.archive("s1")
        assert [summary.session_id for summary in await store.archived()] == ["s1"]

    async def test_an_archived_session_is_not_overwritten(self, store: StateStore) -> None:
        """Its id is taken, although `load` does not see it."""
        _needs_archive(store)
        session = a_session(status=SessionStatus.COMPLETED)
        revision = await store.save(session, expected=None)
        await store.archive("s1")
        for expected in (None, revision):
            with pytest.raises(StaleSession):
                await store.save(a_session(goal="second"), expected=expected)
        assert await store.load("s1") is None
        if type(store).archived is not StateStore.archived:
            assert list(await store.archived()) == [session.summary()]

    async def test_a_damaged_session_is_not_listed_as_archived(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        _needs_archive(store)
        for session_id in ("s1", "s2"):
            await store.save(a_session(session_id, status=SessionStatus.COMPLETED), expected=None)
        await spoil_and_load(store, spoil)
        for session_id in ("s1", "s2"):
            await archive_quietly(store, session_id)
        if type(store).archived is not StateStore.archived:
            assert [summary.session_id for summary in await store.archived()] == ["s2"]


def _needs_archive(store: StateStore) -> None:
    if type(store).archive is StateStore.archive:
        pytest.skip(f"{type(store).__name__} has no archive")
