"""Runs of calls in any order, on both engines: SQLite and PostgreSQL agree with a dictionary."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from deepwork.testing.machines import StoreMachine
from deepwork_sql.cluster import NoPostgres
from deepwork_sql.testing import ProjectStore, forget_sessions, shared_server


class SqliteMachine(StoreMachine):
    """Every run is of a project and a file of its own."""

    def place(self):
        self._folder = tempfile.TemporaryDirectory()
        os.environ["DEEPWORK_DATABASE_URL"] = self.url()
        forget_sessions(self.url())
        return partial(ProjectStore, Path(self._folder.name))

    def url(self):
        return f"sqlite:///{self._folder.name}/machine.db"

    def teardown(self):
        super().teardown()
        os.environ.pop("DEEPWORK_DATABASE_URL", None)  # the next test of this process may start a server
        self._folder.cleanup()


class PostgresMachine(SqliteMachine):
    """All runs use one database of the shared server, one after the other."""

    def url(self):
        return shared_server().url


class OptionalPostgresMachine(PostgresMachine):
    def url(self):
        try:
            return super().url()
        except NoPostgres as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no PostgreSQL: {error}")


few = settings(max_examples=6, stateful_step_count=15)
TestSqliteMachine = SqliteMachine.TestCase
TestSqliteMachine.settings = few
TestPostgresMachine = OptionalPostgresMachine.TestCase
TestPostgresMachine.settings = few
TestPostgresMachine.pytestmark = [pytest.mark.slow]


@pytest.mark.slow
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("machine", [SqliteMachine, PostgresMachine])
def test_long_runs_agree_with_a_dictionary(postgres_server, machine):
    long = settings(max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=[*HealthCheck])
    run_state_machine_as_test(machine, settings=long)
