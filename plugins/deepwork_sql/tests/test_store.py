"""The store `sql` keeps the promises of every state store, on both engines."""

from __future__ import annotations

import json
from functools import partial

import pytest
from sqlalchemy import select, update

from deepwork.testing import StateStoreContract, StateStoreProcessesContract
from deepwork_sql.tables import sessions
from deepwork_sql.testing import ProjectStore


@pytest.fixture
def reopen(project_on_database):
    return partial(ProjectStore, project_on_database.root)


class TestSqlStore(StateStoreContract):
    @pytest.fixture
    async def store(self, reopen):
        async with reopen() as store:
            yield store

    @pytest.fixture
    def reopen(self, project_on_database):
        return partial(ProjectStore, project_on_database.root)

    @pytest.fixture
    def read_raw(self, database):
        async def read_raw(session_id):
            query = select(sessions.c.document).where(sessions.c.session_id == session_id)
            return json.loads(await database.read(lambda tx: tx.execute(query).scalar_one()))

        return read_raw

    @pytest.fixture
    def spoil(self, database):
        async def spoil(session_id):
            statement = update(sessions).where(sessions.c.session_id == session_id).values(document='{"session_id":')
            await database.write(lambda tx: tx.execute(statement))

        return spoil


class TestSqlStoreProcesses(StateStoreProcessesContract):
    @pytest.fixture
    def reopen(self, project_on_database):
        return partial(ProjectStore, project_on_database.root)
