"""What the tests of state share: a project with a job for every situation, and the files of its sessions."""

from __future__ import annotations

import pytest

from deepwork.testing import DeepworkProject, review, step


@pytest.fixture
def demo(project) -> DeepworkProject:
    """Write a job with single steps, groups and a review, and every output that its steps want."""
    project.write_job(
        steps=[*map(step, "abcd"), step("r", reviews=[review()]), step("none", outputs={})],
        workflows={
            "main": ["a", "b"],
            "single": ["a"],
            "long": ["a", "b", "c", "d"],
            "grouped": ["a", ["b", "c"], "d"],
            "opening": [["b", "c"], "d"],
            "last": [["b", "c"]],
            "reviewed": ["r", "a"],
            "empty": ["none", "a"],
        },
    )
    for name in "abcdr":
        project.write(f"{name}.md")
    return project


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
