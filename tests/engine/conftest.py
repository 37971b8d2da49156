"""What the tests of the engine share."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def hostile():
    """The tool that prints the figure of hostile paths: its list, its places, and what it counts."""
    spec = importlib.util.spec_from_file_location(
        "figures_paths", Path(__file__).parents[2] / "tools" / "figures_paths.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stored(project):
    """Read the file of the only session, or of the one named."""

    def read(session_id="*"):
        [file] = project.state.glob(f"session_{session_id}.json")
        return json.loads(file.read_text())

    return read
