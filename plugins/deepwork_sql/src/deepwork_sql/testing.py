"""Fixtures for tests on both engines: `-p deepwork_sql.testing`, or import them in a `conftest.py`.

PostgreSQL is a private cluster of the installed binaries, or the server that `DEEPWORK_TEST_POSTGRES_URL` names.
"""

from __future__ import annotations

import atexit
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from deepwork.api import Workspace, open_context
from deepwork_sql import database
from deepwork_sql.cluster import NoPostgres, Server, running_cluster
from deepwork_sql.store import SqlStore

if TYPE_CHECKING:
    from deepwork.testing import DeepworkProject

ENGINES = ("sqlite", "postgresql")


class ProjectStore(SqlStore):
    """The store of a project in a database of its own process, for contracts: `partial(ProjectStore, folder)`.

    Which database it is says `DEEPWORK_DATABASE_URL`.
    """

    def __init__(self, root: Path) -> None:
        self._context = open_context("sql", root)
        super().__init__(lambda: database(self._context), Workspace(root))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the database too."""
        await self._context.__aexit__(kind, error, trace)


@cache
def shared_server() -> Server:
    """Start the server of this process, which ends with it."""
    if url := os.environ.get("DEEPWORK_TEST_POSTGRES_URL"):
        return Server(url)
    cluster = running_cluster()
    server = cluster.__enter__()
    atexit.register(cluster.__exit__, None, None, None)
    return server


def forget_sessions(url: str) -> None:
    """Delete all sessions of a database, if it has any: for tests that share one."""
    from sqlalchemy import inspect

    from deepwork_sql.address import address_of
    from deepwork_sql.engines import make_engine
    from deepwork_sql.tables import sessions

    engine = make_engine(address_of(url, "the test", machine="test"))
    with engine.begin() as connection:
        if inspect(connection).has_table(sessions.name):
            connection.execute(sessions.delete())
    engine.dispose()


@pytest.fixture(scope="session")
def postgres_server() -> Server:
    """A PostgreSQL server for tests; without PostgreSQL skipped aloud, and an error in CI."""
    try:
        return shared_server()
    except NoPostgres as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no PostgreSQL: {error}")


@contextmanager
def new_database(engine: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a database without tables, and give its URL."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/{secrets.token_hex(4)}.db"
        return
    server: Server = request.getfixturevalue("postgres_server")
    with server.new_database() as url:
        yield url


@pytest.fixture(params=ENGINES)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without tables, once for each engine."""
    with new_database(request.param, tmp_path, request) as url:
        yield url


@pytest.fixture(scope="module", params=ENGINES)
def module_database_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database that all tests of a module share, once for each engine."""
    with new_database(request.param, tmp_path_factory.mktemp("database"), request) as url:
        yield url


@pytest.fixture
def project_on_database(project: DeepworkProject, database_url: str, monkeypatch: Any) -> DeepworkProject:
    """A project whose servers and commands use the database of `database_url`."""
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", database_url)
    return project
