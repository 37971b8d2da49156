"""The stores of the core, by the kit and nothing weaker."""

from __future__ import annotations

import json
from functools import partial

import pytest

from deepwork.api import MemoryStore, Workspace
from deepwork.builtin.json_store.store import JsonStore
from deepwork.testing import StateStoreContract, StateStoreProcessesContract


class TestJsonStore(StateStoreContract, StateStoreProcessesContract):
    @pytest.fixture
    def reopen(self, tmp_path):
        return partial(JsonStore, Workspace(tmp_path))

    @pytest.fixture
    async def store(self, reopen):
        async with reopen() as store:
            yield store

    @pytest.fixture
    def read_raw(self, tmp_path):
        async def read_raw(session_id):
            return json.loads((tmp_path / ".deepwork" / "tmp" / f"session_{session_id}.json").read_text())

        return read_raw

    @pytest.fixture(params=[b"", b'{"session_id": "s1", "go', b'{"session_id": "s2"}', b"\xff\xfe", b"null"])
    def spoil(self, tmp_path, request):
        async def spoil(session_id):
            (tmp_path / ".deepwork" / "tmp" / f"session_{session_id}.json").write_bytes(request.param)

        return spoil


class TestMemoryStore(StateStoreContract):
    @pytest.fixture
    async def store(self):
        async with MemoryStore() as store:
            yield store
