"""Fixtures for pytest; enable them with `-p deepwork.testing.pytest_plugin`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from deepwork.testing.project import DeepworkProject


@pytest.fixture
def project(tmp_path: Path) -> DeepworkProject:
    """An empty project in a folder of its own."""
    from deepwork.testing.project import DeepworkProject

    root = tmp_path / "project"
    root.mkdir()
    return DeepworkProject(root)
