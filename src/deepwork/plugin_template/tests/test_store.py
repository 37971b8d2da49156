from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from deepwork.api import StateStore
from deepwork.testing import StateStoreContract, StateStoreProcessesContract

from deepwork_acme.store import AcmeStore


class TestAcmeStore(StateStoreContract, StateStoreProcessesContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], StateStore]:
        return partial(AcmeStore, tmp_path / "sessions.db")

    @pytest.fixture
    async def store(self, reopen: Callable[[], StateStore]) -> AsyncIterator[StateStore]:
        async with reopen() as store:
            yield store

    @pytest.fixture
    def spoil(self, tmp_path: Path) -> Callable[[str], Awaitable[None]]:
        async def spoil(session_id: str) -> None:
            with closing(sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)) as database:
                database.execute("UPDATE sessions SET content = '{' WHERE id = ?", [session_id])

        return spoil
