from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture(autouse=True)
def _nobodys_home(monkeypatch, tmp_path_factory):
    """The clients of the person who runs the tests are not looked at."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(project):
    """Run the command `deepwork` in the project's folder, with stdin closed."""

    def run(*arguments, options=(), cwd=project.root, **environment):
        command = [sys.executable, *options, "-m", "deepwork", *map(str, arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**os.environ, **environment}
        return subprocess.run(command, **pipes, text=True, timeout=240, cwd=cwd, env=env)

    return run
