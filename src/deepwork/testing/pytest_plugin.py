"""Fixtures for pytest; enable them with `-p deepwork.testing.pytest_plugin`."""

from __future__ import annotations

from contextlib import ExitStack
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    parser.addoption(
        "--starts",
        choices=["exec", "fork"],
        default="exec",
        help="how tests start `python -m deepwork` and scripts: as anybody does (exec), or quickly, from a process "
        "that has imported deepwork already (fork; Linux)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make starts quick, if that is asked for."""
    if config.getoption("--starts") == "fork":
        from deepwork.testing.forkserver import forked_starts

        starts = ExitStack()
        starts.enter_context(forked_starts())
        config.add_cleanup(starts.close)


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
