"""What the tests of the engine share."""

from __future__ import annotations

import importlib.util
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
