"""Short runs of `tools/torture_sql`, which has the long ones. What they measure is printed, and not judged here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[1] / "tools" / "torture_sql"
FEW = ("--processes", "2", "--agents", "4")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "run",
    [
        ("claims", "--items", "200", *FEW),
        ("stale", "--items", "150", "--share", "0.05", *FEW),
        ("feed", "--writers", "4", "--seconds", "5"),
        ("deaths", "--seconds", "12", *FEW),
    ],
    ids=lambda run: run[0],
)
def test_nothing_is_lost_or_done_twice(postgres_server, engine, run):
    command = [sys.executable, TORTURE, *run, "--engine", engine]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=870)
    assert completed.returncode == 0, completed.stdout + completed.stderr
