"""What every test may count on: one async backend, and nothing of the person who runs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from deepwork.loading.discovery import installed

settings.register_profile("deepwork", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("deepwork")


DISTS = Path(__file__).parent / "data" / "dists"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _nobodys_environment(monkeypatch, tmp_path_factory):
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_")):
            monkeypatch.delenv(name)
    # Whatever else is installed beside the core stays out, until a test lets it in.
    others = sorted({one.distribution for one in installed() if not one.builtin})
    monkeypatch.setenv("DEEPWORK_NO_PLUGINS", ",".join(others))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture
def install(monkeypatch):
    """Install fake distributions, for this process and for those that it starts."""

    def install(*names):
        folders = [str(DISTS / name) for name in names]
        for folder in folders:
            monkeypatch.syspath_prepend(folder)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(folders))

    return install
