"""Several servers, for stores that can be reopened."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deepwork.api import SessionStatus, StateStore
from deepwork.errors import StaleSession
from deepwork.testing.contracts.state_store.store import StoreContract, list_ids, load_plain
from deepwork.testing.samples import a_session


class ServersContract(StoreContract):
    """Several servers, for stores that can be reopened."""

    async def test_another_server_sees_a_save_at_once(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as second_store:
            revision = await store.save(a_session(), expected=None)
            assert await load_plain(second_store) == a_session()
            await store.save(a_session(goal="second"), expected=revision)
            assert (await load_plain(second_store)).goal == "second"

    async def test_another_server_finds_a_save_at_once(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as second_store:
            assert await list_ids(second_store) == []
            await store.save(a_session(), expected=None)
            assert await list_ids(second_store) == ["s1"]

    async def test_a_session_that_another_server_reopened_is_found_as_active(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        """A store may remember which sessions are over, but not for longer than that is so."""
        first = await store.save(a_session("s1", status=SessionStatus.COMPLETED), expected=None)
        assert await store.find(status=SessionStatus.ACTIVE) == []
        async with reopen() as second_store:
            second = await second_store.save(a_session("s1"), expected=first)
            await second_store.save(a_session("s1"), expected=second)
        assert [summary.session_id for summary in await store.find(status=SessionStatus.ACTIVE)] == ["s1"]

    async def test_a_save_that_another_server_made_stale_is_refused(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as second_store:
            revision = await store.save(a_session(), expected=None)
            await second_store.save(a_session(goal="theirs"), expected=revision)
            with pytest.raises(StaleSession):
                await store.save(a_session(goal="mine"), expected=revision)
            assert (await load_plain(store)).goal == "theirs"

    async def test_closing_one_store_loses_nothing_and_disturbs_no_other(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as first:
            await first.save(a_session("s1"), expected=None)
        await store.save(a_session("s2"), expected=None)
        async with reopen() as second:
            assert sorted(await list_ids(second)) == ["s1", "s2"]
            assert await load_plain(second, "s1") == a_session("s1")
