"""Short runs of `tools/torture` on databases."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[3] / "tools" / "torture"
FEW = ("--processes", "2", "--agents", "4")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "run",
    [
        ("items", "--count", "150", "--late", "0.05", *FEW),
        ("items", "--count", "600", "--deaths", *FEW),
        ("feed", "--writers", "4", "--seconds", "5"),
        ("kills", "--count", "4", "--transport", "mixed"),
        ("contention", "--servers", "2", "--changes", "100", "--seconds", "90"),
        ("duplicates", "--count", "30"),
        ("amnesia", "--count", "2"),
        ("faults", "--quick"),
    ],
    ids=" ".join,
)
def test_nothing_is_lost_or_done_twice(postgres_server, engine, run):
    command = [sys.executable, TORTURE, *run, "--store", engine]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=870)
    assert completed.returncode == 0, completed.stdout + completed.stderr
