"""What is read and damaged past the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from deepwork.api import SessionStatus, StateStore
from deepwork.errors import CorruptSession
from deepwork.testing.contracts.state_store.store import StoreContract, list_ids, load_plain, spoil_and_load
from deepwork.testing.samples import a_session

TEXT = "Größe, 数据, 🧭, \u202eright to left, e\u0301, 'quotes\" \\ %s {} \r\n\ttab"


class DamageContract(StoreContract):
    """What is read and damaged past the store."""

    async def test_what_is_stored_can_be_read_past_the_store(
        self, store: StateStore, read_raw: Callable[[str], Awaitable[Any]]
    ) -> None:
        await store.save(a_session(goal=TEXT), expected=None)
        raw = await read_raw("s1")
        assert (raw["session_id"], raw["goal"]) == ("s1", TEXT)

    async def test_a_damaged_session_is_an_error_and_never_none(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        await store.save(a_session(), expected=None)
        await spoil("s1")
        with pytest.raises(CorruptSession):
            await store.load("s1")

    async def test_a_damaged_session_hides_no_other(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        await store.save(a_session("s1"), expected=None)
        await store.save(a_session("s2"), expected=None)
        await spoil("s1")
        assert "s2" in await list_ids(store)
        assert await load_plain(store, "s2") == a_session("s2")

    async def test_a_damaged_session_is_not_found(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        """It is not listed any more, at the latest once `load` has noticed."""
        for session_id in ("s1", "s2"):
            await store.save(a_session(session_id), expected=None)
        await spoil_and_load(store, spoil)
        assert await list_ids(store) == ["s2"]
        assert await list_ids(store, status=SessionStatus.ACTIVE) == ["s2"]

    async def test_a_damaged_session_is_named(self, store: StateStore, spoil: Callable[[str], Awaitable[None]]) -> None:
        if type(store).damaged is StateStore.damaged:
            pytest.skip(f"{type(store).__name__} has no `damaged`: damaged sessions are named nowhere")
        await store.save(a_session(), expected=None)
        await spoil("s1")
        with pytest.raises(CorruptSession):
            await store.load("s1")
        assert len(await store.damaged()) == 1
