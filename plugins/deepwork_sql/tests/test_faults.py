"""Connections that break at the worst moment, and test processes that are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import deepwork_sql
from deepwork.api import open_context

on_postgres = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


class Proxy:
    """Passes bytes between clients and a server, and cuts one connection at its COMMIT."""

    def __init__(self, host, port):
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._peers = [self._listener]
        self.port = self._listener.getsockname()[1]
        self.cut = None  # "before" or "after" the server has got the next COMMIT
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for peer in self._peers:
            _close(peer)
            peer.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._peers += [client, server]
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _requests(self, client, server):
        with suppress(OSError):  # the other side may be closed already
            while data := _received(client):
                if self.cut and b"COMMIT\0" in data:
                    self._cut(client, server, data)
                    break
                server.sendall(data)
        _close(server)

    def _cut(self, client, server, data):
        cut, self.cut = self.cut, None
        _close(client)  # so that the other thread can pass no answer on
        if cut == "after":
            server.sendall(data)
            server.settimeout(1)
            _received(server)

    def _answers(self, client, server):
        try:
            while data := _received(server):
                client.sendall(data)
        except OSError:
            pass
        _close(client)


def _received(peer):
    try:
        return peer.recv(65536)
    except OSError:
        return b""


def _close(peer):
    with suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(project_on_database, database_url, monkeypatch):
    parts = urlsplit(database_url)
    proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 5432)
    user = parts.netloc.rpartition("@")[0]
    through = parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}", query="sslmode=disable")
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", through.geturl())
    yield proxy
    proxy.close()


@pytest.mark.anyio
@on_postgres
@pytest.mark.parametrize(("cut", "runs"), [("after", 1), ("before", 2)])
async def test_a_commit_whose_answer_is_lost_is_made_once(project_on_database, proxy, cut, runs):
    """PostgreSQL is asked what became of it: a change that was committed is not run again, another one is."""
    begun = []

    def change(tx):
        begun.append(tx.now)
        tx.emit("acme", "paid", workflow_id=None, data={"n": len(begun)})
        return len(begun)

    async with open_context("acme", project_on_database.root) as context:
        database = await deepwork_sql.database(context)
        proxy.cut = cut
        assert await database.write(change) == runs
        assert proxy.cut is None
        assert [event.data for event in await database.feed(None)] == [{"n": runs}]
    assert len(begun) == runs


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
