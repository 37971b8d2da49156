"""What the tests of the core and of every plugin share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parent / "tests"))
from forkserver import forked_starts
from looked_up import looked_up_once
from patient import be_patient
from stored_fixtures import restored

STORED = sorted((Path(__file__).parent / "tests/data/stored").iterdir())

settings.register_profile(
    "deepwork",
    deadline=None,  # no test fails because the machine is busy
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
)
settings.load_profile("deepwork")


def pytest_addoption(parser):
    parser.addoption(
        "--starts",
        choices=["exec", "fork"],
        default="exec",
        help="how tests start `python -m deepwork` and scripts: as their users do (exec), or quickly, from a process "
        "that has imported deepwork already (fork; Linux)",
    )


def pytest_configure(config):
    """Wait for what a slow machine does, and fork processes instead of starting them, if that is asked for."""
    be_patient()
    if config.getoption("--starts") == "fork":
        starts = ExitStack()
        starts.enter_context(forked_starts())
        config.add_cleanup(starts.close)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Do not look for garbage among thousands of tests, neither while they are collected nor each time afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leave tests on PostgreSQL to `make test-all`, but for a few of each plugin that run on it every time."""
    for item in items:
        engines = getattr(item, "callspec", None) and item.callspec.params.values()
        if engines and "postgresql" in engines and not item.get_closest_marker("smoke"):
            item.add_marker("slow")


@pytest.fixture(scope="session", autouse=True)
def _looked_up_once():
    """Look up once what the servers and clients of thousands of tests would look up anew."""
    with looked_up_once():
        yield


@pytest.fixture(params=STORED, ids=lambda folder: folder.name)
def old_state(request, tmp_path, monkeypatch):
    """What a release has stored, in a folder of its own, with the environment of its user."""
    state = restored(request.param, tmp_path)
    for name, value in state.environment.items():
        monkeypatch.setenv(name, value)
    return state


@pytest.fixture(params=["sqlite", "postgresql"])
def old_database(request, old_state, monkeypatch):
    """The name of a database that a release has left, which the project of `old_state` uses."""
    if request.param == "postgresql":
        from deepwork_sql.cluster import find_program

        with request.getfixturevalue("postgres_server").new_database() as url:
            command = [find_program("psql"), "--quiet", "--set", "ON_ERROR_STOP=1", url]
            subprocess.run(command, input=old_state.sql(), text=True, check=True, stdout=subprocess.DEVNULL)
            monkeypatch.setenv("DEEPWORK_DATABASE_URL", url)
            yield request.param
    else:
        yield request.param
