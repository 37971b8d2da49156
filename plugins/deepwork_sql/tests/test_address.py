"""Without PostgreSQL's driver, which is an extra, SQLite is used as ever, and an address says what to install."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.anyio

ADDRESS = "postgresql://u:hunter2@127.0.0.1:1/d"


@pytest.fixture(autouse=True)
def no_driver(tmp_path, monkeypatch):
    """In this process and in others an import of psycopg fails."""
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "psycopg.py").write_text("raise ImportError('no pq wrapper available')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "psycopg"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)


def test_a_command_on_postgresql_says_what_to_install(project, deepwork, monkeypatch):
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", ADDRESS)
    result = deepwork("store", "info")
    assert result.code == 1
    assert "needs the driver of PostgreSQL" in result.err
    assert 'Install deepwork-sql with its extra "postgresql"' in result.err
    assert "hunter2" not in result.err


def test_doctor_says_what_to_install(project, deepwork, monkeypatch):
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", ADDRESS)
    result = deepwork("doctor")
    assert result.code == 1
    assert 'extra "postgresql"' in result.out


async def test_an_agent_is_refused_with_what_to_install(project, monkeypatch):
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", ADDRESS)
    project.write_job()
    async with project.agent(state_store="sql") as agent:
        error = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
    assert 'extra "postgresql"' in error


async def test_sqlite_needs_no_driver(project):
    project.write_job()
    async with project.agent(state_store="sql") as agent:
        started = await agent.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
    assert started["begin_step"]["session_id"]
