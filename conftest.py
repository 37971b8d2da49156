"""What the tests of the core and of every plugin share."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave tests on PostgreSQL to `make test-all`, but for a few of each plugin that run on it every time."""
    for item in items:
        engines = getattr(item, "callspec", None) and item.callspec.params.values()
        if engines and "postgresql" in engines and not item.get_closest_marker("smoke"):
            item.add_marker("slow")
