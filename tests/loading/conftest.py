from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture
def serve(project):
    """Run `deepwork serve` with stdin closed, so that it ends as soon as it has started."""

    def serve(*arguments):
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root), *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)

    return serve
