"""Runs of calls in any order, on both engines: SQLite and PostgreSQL agree with a dictionary."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from deepwork_sql.cluster import NoPostgres
from deepwork_sql.machines import PostgresMachine, SqliteMachine


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
