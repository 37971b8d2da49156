from __future__ import annotations

import pytest

from deepwork.api import project_at
from deepwork.ports.inbox import Answerer

PERSON = Answerer(user="ada", terminal="/dev/pts/0")


@pytest.fixture(autouse=True)
def _nobodys_home(nobodys_home):
    """No test looks at the clients of the person who runs it."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """No test depends on the speed of the machine."""
    monkeypatch.setenv("DEEPWORK_HOOK_SECONDS", "60")
    monkeypatch.setattr("deepwork.builtin.clients.hook_tool.SECONDS", 60)
    monkeypatch.setattr("deepwork.builtin.clients.desk.PLUGIN_SECONDS", 60)


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


@pytest.fixture
def person(project):
    """Do what a person does to a session, from another process as far as the servers can tell."""

    async def person(act, session_id, *arguments):
        access = project_at(project.root)
        try:
            changes = access.interventions()
            await getattr(changes, act)(await changes.named(session_id), *arguments, PERSON)
        finally:
            await access.close()

    return person
