"""What the tests of state share: a project with a job for every situation, and the files of its sessions."""

from __future__ import annotations

import pytest


@pytest.fixture
def events(stored):
    """List what happened in a session, as kind and step."""

    def read(session_id: str) -> list[tuple[str, str | None]]:
        return [(event["kind"], event["step_id"]) for event in stored(session_id)["history"]]

    return read


@pytest.fixture
def tear(project):
    """Cut the file of a session off, as a broken disk would."""

    def cut(session_id: str, size: int = 100) -> None:
        file = project.state / f"session_{session_id}.json"
        file.write_bytes(file.read_bytes()[:size])

    return cut
