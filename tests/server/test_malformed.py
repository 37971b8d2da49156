"""Calls that are wrong in every way that the schemas allow for: each is answered, and none changes anything."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "engine")]
import malformed_calls

TALKATIVE = """
import logging

real = logging.Logger.debug

def debug(self, message, *values, **more):
    if self.name == "deepwork.server":
        self.warning("talkative " * 60)
    return real(self, message, *values, **more)

logging.Logger.debug = debug
"""


@pytest.fixture(autouse=True)
def _every_tool_set(monkeypatch):
    monkeypatch.delenv("DEEPWORK_NO_PLUGINS")


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_every_malformed_call_is_answered_and_changes_nothing(transport, count):
    measured = malformed_calls.measure(transport, count, seed=7)
    assert (measured.unanswered, measured.loud, measured.after) == ([], [], [])


def test_a_server_that_says_too_much_is_found_out(monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(TALKATIVE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    assert malformed_calls.measure("stdio", 60, seed=1).loud != []
