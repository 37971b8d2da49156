"""The store of a test, and how tests look into it."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from deepwork.api import Session, StateStore
from deepwork.errors import CorruptSession, StorageError
from deepwork.testing.contracts.contract import Contract


class StoreContract(Contract):
    """What all contracts of stores take: the store of each test is empty, and inside of its `async with`."""

    @pytest.fixture
    async def store(self) -> Any:
        """Yield the store to test, inside of its `async with`."""
        raise NotImplementedError("override the fixture `store`")

    @pytest.fixture
    def reopen(self) -> Callable[[], StateStore]:
        """Return a function that makes another store on the same data, as a second server would."""
        pytest.skip("`reopen` is not overridden: the store keeps nothing beyond its own life")

    @pytest.fixture
    def read_raw(self) -> Callable[[str], Awaitable[Any]]:
        """Return an async function that reads the stored form of a session, past the store, as a mapping."""
        pytest.skip("`read_raw` is not overridden")

    @pytest.fixture
    def spoil(self) -> Callable[[str], Awaitable[None]]:
        """Return an async function that damages the stored form of a session, past the store."""
        pytest.skip("`spoil` is not overridden")


async def load_stored(store: StateStore, session_id: str = "s1") -> Session:
    session = await store.load(session_id)
    assert session is not None, f"session {session_id!r} is missing"
    return session


def plain(session: Session) -> Session:
    """A session without its revision, which is the store's."""
    return session.model_copy(update={"revision": 0})


async def load_plain(store: StateStore, session_id: str = "s1") -> Session:
    return plain(await load_stored(store, session_id))


async def list_ids(store: StateStore, **filters: Any) -> list[str]:
    return [summary.session_id for summary in await store.find(**filters)]


async def spoil_and_load(store: StateStore, spoil: Callable[[str], Awaitable[None]]) -> None:
    await spoil("s1")
    with pytest.raises(CorruptSession):
        await store.load("s1")


async def archive_quietly(store: StateStore, session_id: str) -> None:
    """Archive what may not be there, or is damaged; a refusal is as good as doing nothing."""
    with contextlib.suppress(StorageError):
        await store.archive(session_id)
