"""Databases of both engines, and contexts of plugins that use them."""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql.testing import (  # noqa: F401 - fixtures
    database_url,
    module_database_url,
    postgres_server,
    project_on_database,
)

SCHEMAS = Path(__file__).parent / "data" / "schemas"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path_factory):
    """Hide the configuration of the user who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_", "PG")) and name != "DEEPWORK_TEST_POSTGRES_URL":
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))


@pytest.fixture
async def database(project_on_database):
    """An open database of each engine."""
    async with open_context("acme", project_on_database.root) as context:
        yield await deepwork_sql.database(context)


@pytest.fixture
def git():
    """Run git in a folder."""

    def git(folder, *arguments):
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    return git


@pytest.fixture
def repository(tmp_path, git):
    """A repository with a linked working tree beside it."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    return main, linked


@pytest.fixture
def earlier(project):
    """Make the database of a project as an earlier release did, with the two events of the dumped schema."""

    def earlier(root=project.root, *, own=True):
        folder = root / ".deepwork" / "data"
        folder.mkdir(parents=True, mode=0o700)
        number = secrets.token_bytes(8)
        with closing(sqlite3.connect(folder / "deepwork.db", isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript((SCHEMAS / "0001.sqlite.sql").read_text())
            connection.execute(f"PRAGMA user_version = {int.from_bytes(number[:4], 'big', signed=True)}")
            connection.execute(f"PRAGMA application_id = {int.from_bytes(number[4:], 'big', signed=True)}")
        (folder / ".gitignore").write_text("*\n")
        if own:
            noted = Path(os.environ["XDG_STATE_HOME"]) / "deepwork" / "databases" / number.hex()
            noted.parent.mkdir(parents=True, exist_ok=True)
            noted.touch()
        return folder / "deepwork.db"

    return earlier


@pytest.fixture
def deepwork(project):
    """Run `deepwork` in the project."""

    def deepwork(*arguments, root=project.root):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(root)]
        result = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return SimpleNamespace(code=result.returncode, out=result.stdout, err=result.stderr)

    return deepwork


class Proxy:
    """Passes bytes between clients and a server, and cuts one connection at its COMMIT."""

    def __init__(self, host, port):
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._peers = [self._listener]
        self.port = self._listener.getsockname()[1]
        self.cut = None  # "before" or "after" the server has got the next COMMIT
        self.skip = 0  # so many COMMITs come before that one
        self.stays_away = False  # afterwards
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
            if self.stays_away and self.cut is None:
                client.close()
                continue
            server = socket.create_connection(self._server)
            self._peers += [client, server]
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _requests(self, client, server):
        with suppress(OSError):  # the other side may be closed already
            while data := _received(client):
                if self.cut and b"COMMIT\0" in data:
                    if not self.skip:
                        self._cut(client, server, data)
                        break
                    self.skip -= 1
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
