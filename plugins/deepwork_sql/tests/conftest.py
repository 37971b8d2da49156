"""Databases of both engines, and contexts of plugins that use them."""

from __future__ import annotations

import os
import secrets
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from anyio import to_thread

import deepwork_sql
from deepwork.api import open_context
from deepwork.project.stores import open_store
from deepwork_sql.testing import (  # noqa: F401 - fixtures
    database_url,
    module_database_url,
    postgres_server,
    project_on_database,
)

sys.path.insert(0, str(Path(__file__).parent))
from cutting_proxy import proxy_to

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


@pytest.fixture
def run(project_on_database):
    """Run `deepwork` in the project."""

    async def run(*arguments, code=0):
        command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project_on_database.root)]
        completed = await to_thread.run_sync(
            lambda: subprocess.run(command, capture_output=True, text=True, timeout=240)
        )
        assert completed.returncode == code, completed.stderr
        return completed.stdout

    return run


@pytest.fixture
def save(project_on_database):
    """Save new sessions in a store of the project."""

    async def save(store_name, *new_sessions):
        async with open_store(project_on_database.root, store_name) as store:
            for session in new_sessions:
                await store.save(session, expected=None)

    return save


@pytest.fixture
def proxy(project_on_database, database_url, monkeypatch):
    with proxy_to(database_url) as (proxy, url):
        monkeypatch.setenv("DEEPWORK_DATABASE_URL", url)
        yield proxy
