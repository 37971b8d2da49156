"""Runs of calls in any order, on both engines: SQLite and PostgreSQL agree with a dictionary.

`python plugins/deepwork_sql/tools/agree.py` does the same for as long as one likes, and for JSON too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from deepwork_sql.cluster import NoPostgres
from deepwork_sql.machines import PostgresMachine, SqliteMachine

AGREE = Path(__file__).parents[1] / "tools" / "agree.py"


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
def test_json_sqlite_and_postgresql_agree_in_long_runs(postgres_server):
    subprocess.run([sys.executable, AGREE, "--runs", "40", "--rules", "50"], check=True, timeout=900)
