"""Connections that break at the worst moment of a transaction."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import psycopg
import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork.testing import Refused
from deepwork_sql.cluster import NoPostgres, running_cluster
from deepwork_sql.errors import DatabaseError

sys.path.insert(0, str(Path(__file__).parent))
from cutting_proxy import proxy_to

START = {"goal": "g", "job_name": "demo", "workflow_name": "main"}

on_postgres = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


async def pay(root, proxy, cut):
    """Pay by a change whose COMMIT is cut; return how often it ran, what was answered, and what the feed has."""
    starts = []

    def change(tx):
        starts.append(tx.now)
        tx.emit("acme", "paid", workflow_id=None, data={"n": len(starts)})
        return len(starts)

    async with open_context("acme", root) as context:
        database = await deepwork_sql.database(context)
        proxy.cut = cut
        answer = await database.write(change)
        return len(starts), answer, [event.data["n"] for event in await database.feed(None)]


@pytest.mark.anyio
@on_postgres
@pytest.mark.parametrize(("cut", "runs"), [("after", 1), ("before", 2)])
async def test_a_commit_whose_answer_is_lost_is_made_once(project_on_database, proxy, cut, runs):
    """PostgreSQL is asked what became of it: a change that was committed is not run again, another one is."""
    assert await pay(project_on_database.root, proxy, cut) == (runs, runs, [runs])
    assert proxy.cut is None


@pytest.fixture
def crashing(project, monkeypatch):
    """A PostgreSQL of its own that crashes at a COMMIT, behind a proxy; `use_ids` is what happens to it afterwards."""
    try:
        with running_cluster() as cluster, proxy_to(cluster.url) as (proxy, url):

            def crash():
                cluster.restart("immediate")
                with psycopg.connect(cluster.url, autocommit=True) as connection:
                    for _ in range(proxy.ids_used):
                        connection.execute("SELECT pg_current_xact_id()")

            proxy.when_cut, proxy.ids_used = crash, 0
            monkeypatch.setenv("DEEPWORK_DATABASE_URL", url)
            yield proxy
    except NoPostgres as error:
        pytest.skip(f"no PostgreSQL: {error}")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize(("cut", "runs"), [("after", 1), ("before", 2)])
@pytest.mark.parametrize("ids_used", [0, 5])
async def test_what_a_crash_at_the_commit_has_undone_is_made_again(project, crashing, cut, runs, ids_used):
    """Later transactions get the ids of undone ones, and commit, which says nothing of the latter."""
    crashing.ids_used = ids_used
    assert await pay(project.root, crashing, cut) == (runs, runs, [runs])


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_change_without_events_is_in_doubt_when_a_crash_may_have_undone_it(project, crashing):
    def change(tx):
        tx.once(principal="me", tool="pay", request_id="1", arguments={}, work=lambda: "paid")

    async with open_context("acme", project.root) as context:
        database = await deepwork_sql.database(context)
        crashing.cut, crashing.ids_used = "before", 5
        with pytest.raises(DatabaseError, match="has not said whether the change was made"):
            await database.write(change)


@pytest.mark.anyio
async def test_a_file_that_could_only_be_read_is_written_as_soon_as_it_can_be(project, tmp_path, monkeypatch):
    """SQLite opens a file that cannot be written for reading only, and a server keeps its connections."""
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", f"sqlite:///{tmp_path}/own.db")
    project.write_job()
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    async with project.agent() as agent:
        await agent.call("start_workflow", **START)
    connect = sqlite3.dbapi2.connect

    def connect_read_only(path, **options):
        return connect(f"file:{path}?mode=ro", uri=True, **options)

    async with project.agent() as agent:
        with monkeypatch.context() as disk:
            disk.setattr("sqlite3.dbapi2.connect", connect_read_only)
            with pytest.raises(Refused, match="attempt to write a readonly database; nothing was changed"):
                await agent.call("start_workflow", **START)
        assert (await agent.call("start_workflow", **START))["begin_step"]
