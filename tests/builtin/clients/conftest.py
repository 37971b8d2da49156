from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _nobodys_home(nobodys_home):
    """No test looks at the clients of the person who runs it."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, where all that clients and deepwork keep for a user is found by default."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def second(tmp_path):
    """The folder of another project."""
    folder = tmp_path / "second"
    folder.mkdir()
    return folder
