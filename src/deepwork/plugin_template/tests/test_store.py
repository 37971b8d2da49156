from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from deepwork.api import StateStore, Workspace
from deepwork.errors import PathRefused
from deepwork.testing import StateStoreContract, StateStoreProcessesContract

from deepwork_acme.store import FILE, AcmeStore


class TestAcmeStore(StateStoreContract, StateStoreProcessesContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], StateStore]:
        return partial(AcmeStore, Workspace(tmp_path))

    @pytest.fixture
    async def store(self, reopen: Callable[[], StateStore]) -> AsyncIterator[StateStore]:
        async with reopen() as store:
            yield store

    @pytest.fixture
    def spoil(self, tmp_path: Path) -> Callable[[str], Awaitable[None]]:
        async def spoil(session_id: str) -> None:
            file = tmp_path / ".deepwork" / "tmp" / FILE
            with closing(sqlite3.connect(file, isolation_level=None)) as database:
                database.execute("UPDATE sessions SET content = '{' WHERE id = ?", [session_id])

        return spoil


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    async with AcmeStore(Workspace(tmp_path)):
        assert (tmp_path / ".deepwork" / "tmp" / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_link_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".deepwork" / "tmp"
    folder.mkdir(parents=True)
    (folder / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathRefused):
        await AcmeStore(Workspace(tmp_path / "project")).__aenter__()
    assert not (tmp_path / "elsewhere").exists()
