"""What every test may count on: one async backend, and no configuration of the person who runs them."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("deepwork", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("deepwork")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _nobodys_environment(monkeypatch, tmp_path_factory):
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
