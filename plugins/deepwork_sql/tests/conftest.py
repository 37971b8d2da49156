"""Databases of both engines, and contexts of plugins that use them."""

from __future__ import annotations

import os

import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql.testing import (  # noqa: F401 - fixtures
    database_url,
    module_database_url,
    postgres_server,
    project_on_database,
)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path_factory):
    """Hide the configuration of whoever runs the tests."""
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
