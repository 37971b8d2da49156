"""What the tests of the engine share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def hostile():
    """The hostile paths, the places that take a path, and what an answer may not tell."""
    spec = importlib.util.spec_from_file_location("hostile_paths", Path(__file__).with_name("hostile_paths.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
