from __future__ import annotations

import os
import pty
import sys

import pytest

from deepwork.api import NeedsWork, Passed
from deepwork.paths.user_folders import user_config_file


@pytest.fixture(autouse=True)
def _strict():
    """The user's own configuration makes every gate strict."""
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("quality_gate: {strict: true}\n")


@pytest.fixture
def is_good():
    """Judge as a reviewer that passes work in which each file says GOOD."""

    def is_good(request):
        texts = [(request.files_root / path).read_text() for path in request.files]
        return Passed() if texts and all("GOOD" in text for text in texts) else NeedsWork("It is not GOOD")

    return is_good


@pytest.fixture
def steps_done(stored):
    """Tell which steps of the only session are completed."""

    def read():
        progress = stored()["step_progress"]
        return [step_id for step_id in progress if progress[step_id]["completed_at"]]

    return read


@pytest.fixture
def in_terminal():
    """Run the command at a terminal, as a person does, and give what is shown and the exit code."""

    def in_terminal(root, *arguments):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(root)
            os.execv(sys.executable, [sys.executable, "-m", "deepwork", *arguments, "--path", str(root)])
        output = b""
        while True:
            try:
                chunk = os.read(terminal, 4096)
            except OSError:  # Linux says so when the other end is closed
                break
            if not chunk:
                break
            output += chunk
        os.close(terminal)
        return output.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    return in_terminal
