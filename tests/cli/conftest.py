from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def run(project):
    """Run the command `deepwork` in the project's folder, with stdin closed."""

    def run(*arguments, options=(), cwd=project.root, **environment):
        command = [sys.executable, *options, "-m", "deepwork", *map(str, arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**os.environ, **environment}
        return subprocess.run(command, **pipes, text=True, timeout=60, cwd=cwd, env=env)

    return run
