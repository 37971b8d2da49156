"""What `deepwork doctor` says of the database."""

from __future__ import annotations

import anyio
import pytest
from sqlalchemy import inspect

from deepwork_sql.address import address_of
from deepwork_sql.engines import make_engine

pytestmark = pytest.mark.anyio


async def test_doctor_looks_at_a_database_without_making_its_tables(database_url, project_on_database, run, save):
    if database_url.startswith("sqlite"):
        await anyio.Path(database_url.removeprefix("sqlite:///")).touch()
    assert "the first use brings the tables of deepwork" in await run("doctor")
    engine = make_engine(address_of(database_url, "the test", machine="m"))
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    engine.dispose()
    project_on_database.write(".deepwork/config.yml", "plugins: {settings: {sql: {migrate: false}}}\n")
    assert "run `deepwork store migrate` once" in await run("doctor", code=1)
    project_on_database.write(".deepwork/config.yml", "")
    await save("sql")
    assert "0 sessions of this project, 0 events" in await run("doctor")
