from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork.loading.discovery import installed

DISTS = Path(__file__).parent.parent / "data" / "dists"


@pytest.fixture(autouse=True)
def _nothing_but_the_core(monkeypatch):
    """Whatever else is installed beside the core stays out, until a test installs something."""
    others = {one.distribution for one in installed() if not one.builtin}
    monkeypatch.setenv("DEEPWORK_NO_PLUGINS", ",".join(others))


@pytest.fixture
def install(monkeypatch):
    """Install fake distributions for processes that are started."""
    return lambda *names: monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(DISTS / name) for name in names))


@pytest.fixture
def run(project):
    """Run the command `deepwork` in the project's folder, with stdin closed."""

    def run(*arguments, options=(), cwd=project.root, **environment):
        command = [sys.executable, *options, "-m", "deepwork", *map(str, arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**os.environ, **environment}
        return subprocess.run(command, **pipes, text=True, timeout=60, cwd=cwd, env=env)

    return run
