"""Fixtures for pytest; enable them with `-p deepwork.testing.pytest_plugin`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from deepwork.testing.project import DeepworkProject


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeepworkProject:
    """An empty project in a folder of its own. What the person who runs the tests has trusted stays out of it."""
    from deepwork.testing.project import DeepworkProject

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "user-state"))
    root = tmp_path / "project"
    root.mkdir()
    return DeepworkProject(root)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse marks that pytest cannot run a `StoreMachine` with: it is a `unittest.TestCase`, and not async.

    Raises:
        UsageError: It has such a mark; the error says what to do.
    """
    if isinstance(item, pytest.Function) and getattr(item.obj, "is_hypothesis_test", False) and item.name == "runTest":
        for mark in ("parametrize", "usefixtures"):
            if item.get_closest_marker(mark):
                raise pytest.UsageError(
                    f"{item.nodeid}: a StoreMachine takes no mark {mark!r}; move it to a module without that mark"
                )
