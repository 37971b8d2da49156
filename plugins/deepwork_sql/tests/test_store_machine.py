"""Long runs of calls in any order, on both engines: JSON, SQLite, PostgreSQL and a dictionary agree.

`plugins/deepwork_sql/tools/agree.py` does the same for as long as one likes.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from deepwork.testing.machines import StoreMachine
from deepwork_sql.cluster import NoPostgres
from deepwork_sql.testing import ProjectStore, forget_sessions, shared_server


class SqlMachine(StoreMachine):
    """Every run is of a project of its own."""

    def place(self):
        self._folder = tempfile.TemporaryDirectory()
        os.environ["DEEPWORK_DATABASE_URL"] = self.url()
        forget_sessions(self.url())
        return partial(ProjectStore, Path(self._folder.name))

    def url(self):
        return f"sqlite:///{self._folder.name}/machine.db"

    def teardown(self):
        super().teardown()
        self._folder.cleanup()


class PostgresMachine(SqlMachine):
    def url(self):
        try:
            return shared_server().url
        except NoPostgres as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no PostgreSQL: {error}")


few = settings(max_examples=12, stateful_step_count=15)
TestSqliteMachine = SqlMachine.TestCase
TestSqliteMachine.settings = few
TestPostgresMachine = PostgresMachine.TestCase
TestPostgresMachine.settings = few
