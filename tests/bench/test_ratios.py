"""A short run: has the server become half as slow again as it was?"""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow

# What the ratios of the best rounds are. They are of processor time, which other work on the machine changes little.
# Whoever makes the server faster puts the new ratios here: a ratio is noticed once it is 1.35 times what it was.
KNOWN = {
    "start.cpu": 0.84,
    "exit.cpu": 0.12,
    "step.cpu": 3.0,
    "list.first.cpu": 2.0,
    "list.next.cpu": 2.3,
    "sessions.cpu": 5.2,
}
MARGIN = 1.35

# FLOOR again, with half a second of work at its start.
BURDENED = """
import runpy, sys, time
while time.process_time() < 0.5: pass
sys.argv = ["floor.py"]
runpy.run_path({floor!r}, run_name="__main__")
"""


def test_the_server_has_not_become_much_slower(bench, tmp_path):
    ran = bench(
        *("deepwork=deepwork serve --path {project}", "--quick", "--rounds", "2"),
        *("--figures", "start,steps,listing,sessions", "--json", tmp_path / "found.json"),
    )
    assert ran.code == 0, ran.stderr
    best = {one["key"]: one["best"] for one in json.loads((tmp_path / "found.json").read_text())["figures"]}
    slower = {key: f"{best[key]:.2f}, was {known}" for key, known in KNOWN.items() if best[key] > known * MARGIN}
    assert not slower, f"{slower}\n{ran.stdout}"


def test_a_twin_of_floor_is_as_fast_and_a_burdened_one_is_not(bench, tmp_path):
    from bench.contestants import FLOOR, FLOOR_SCRIPT

    (tmp_path / "burdened.py").write_text(BURDENED.format(floor=str(FLOOR_SCRIPT)))
    ran = bench(
        *(f"twin={FLOOR.command}", f"burdened=python {tmp_path}/burdened.py"),
        *("--figures", "start", "--rounds", "1", "--json", tmp_path / "found.json"),
    )
    assert ran.code == 0, ran.stderr
    figures = json.loads((tmp_path / "found.json").read_text())["figures"]
    best = {one["contestant"]: one["best"] for one in figures if one["key"] == "start.cpu"}
    assert best["twin"] == pytest.approx(1, abs=0.15)
    assert best["burdened"] > 1.4
