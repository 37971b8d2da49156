"""Connections that break at the worst moment, and test processes that are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import deepwork_sql
from deepwork.api import open_context

on_postgres = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.mark.anyio
@on_postgres
@pytest.mark.parametrize(("cut", "runs"), [("after", 1), ("before", 2)])
async def test_a_commit_whose_answer_is_lost_is_made_once(project_on_database, proxy, cut, runs):
    """PostgreSQL is asked what became of it: a change that was committed is not run again, another one is."""
    starts = []

    def change(tx):
        starts.append(tx.now)
        tx.emit("acme", "paid", workflow_id=None, data={"n": len(starts)})
        return len(starts)

    async with open_context("acme", project_on_database.root) as context:
        database = await deepwork_sql.database(context)
        proxy.cut = cut
        assert await database.write(change) == runs
        assert proxy.cut is None
        assert [event.data for event in await database.feed(None)] == [{"n": runs}]
    assert len(starts) == runs


@pytest.mark.slow
def test_a_test_process_that_is_killed_leaves_no_postgresql_and_no_folder(postgres_server):
    code = (
        "import time\nfrom deepwork_sql.cluster import running_cluster\n"
        "with running_cluster() as cluster:\n    print(cluster.url, cluster.folder, flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        url, folder = process.stdout.readline().split()
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    parts = urlsplit(url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((parts.hostname, parts.port))
    assert not Path(folder).exists()
