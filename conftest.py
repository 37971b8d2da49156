"""What the tests of the core and of every plugin share."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "deepwork",
    deadline=None,  # no test fails because the machine is busy
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.load_profile("deepwork")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave tests on PostgreSQL to `make test-all`, but for a few of each plugin that run on it every time."""
    for item in items:
        engines = getattr(item, "callspec", None) and item.callspec.params.values()
        if engines and "postgresql" in engines and not item.get_closest_marker("smoke"):
            item.add_marker("slow")
