"""A short run of `python tools/torture malformed`: calls that are wrong in every way that the schemas allow for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[2] / "tools" / "torture"

TALKATIVE = """
import logging

real = logging.Logger.debug

def debug(self, message, *values, **more):
    if self.name == "deepwork.server":
        self.warning("talkative " * 60)
    return real(self, message, *values, **more)

logging.Logger.debug = debug
"""


@pytest.fixture
def malformed(monkeypatch):
    """Run the command, with every installed tool set; returns its code and what it printed."""
    monkeypatch.delenv("DEEPWORK_NO_PLUGINS")

    def malformed(*arguments, **environment):
        command = [sys.executable, str(TORTURE), "malformed", *arguments]
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=100, env={**os.environ, **environment}
        )
        return process.returncode, process.stdout + process.stderr

    return malformed


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_every_malformed_call_is_answered_and_changes_nothing(malformed, transport):
    code, report = malformed("--calls", "300", "--transport", transport, "--seed", "7")
    assert "every promise was kept" in report, report
    assert code == 0, report


def test_a_server_that_says_too_much_is_found_out(malformed, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TALKATIVE)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    code, report = malformed("--calls", "60", PYTHONPATH=path)
    assert code == 1
    assert "FAILED: calls that logged over 500 bytes" in report
