"""Every test of every contract notices what it is there for: bad implementations are planted, and found out.

`planted/bad_*.py` hold the implementations, each with the name of the test that it `breaks`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PLANTED = Path(__file__).parent / "planted"
FILES = sorted(path.stem for path in PLANTED.glob("bad_*.py"))


@pytest.fixture
def planted(monkeypatch):
    """Import a file of bad implementations, and give its contracts and its test classes."""

    def planted(stem):
        spec = importlib.util.spec_from_file_location(stem, PLANTED / f"{stem}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, stem, module)
        monkeypatch.setattr(sys, "path", [*sys.path])  # the files put their distributions there
        spec.loader.exec_module(module)
        classes = {name: value for name, value in vars(module).items() if name.startswith("Test")}
        return module.CONTRACTS, classes

    return planted


@pytest.fixture
def run_pytest(tmp_path):
    """Run tests of one file in a process of their own, and give what became of each: `Class::test`."""

    def run_pytest(stem, *selected):
        report = tmp_path / "report.xml"
        plugins = ["-p", "deepwork.testing.pytest_plugin", "-p", "no:xdist", "-p", "no:cacheprovider"]
        options = [*plugins, "-c", os.devnull, "-q", "--tb=line", f"--junitxml={report}", f"--basetemp={tmp_path}/base"]
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *(f"{PLANTED / stem}.py{selection}" for selection in selected)],
            capture_output=True,
            text=True,
            timeout=870,
            cwd=PLANTED,
        )
        assert ran.returncode in (0, 1), ran.stdout + ran.stderr
        outcomes = {}
        for case in ET.parse(report).iter("testcase"):
            key = f"{case.get('classname').rpartition('.')[2]}::{case.get('name').partition('[')[0]}"
            bad = {child.tag for child in case} & {"failure", "error", "skipped"}
            outcomes.setdefault(key, set()).update(bad or {"passed"})
        return outcomes

    return run_pytest


@pytest.mark.parametrize("stem", FILES)
def test_every_test_of_a_contract_has_something_to_notice(planted, stem):
    contracts, classes = planted(stem)
    promised = {name for contract in contracts for name in dir(contract) if name.startswith("test_")}
    assert {test_class.breaks for test_class in classes.values()} - {None} == promised


@pytest.mark.parametrize("stem", FILES)
def test_what_is_planted_is_found_out(planted, run_pytest, stem):
    _, classes = planted(stem)
    intended = {f"{name}::{test_class.breaks}" for name, test_class in classes.items() if test_class.breaks}
    outcomes = run_pytest(stem, *(f"::{test}" for test in intended))
    assert {test for test in intended if "failure" not in outcomes.get(test, ())} == set()


@pytest.mark.parametrize("stem", FILES)
def test_what_is_good_passes_every_test(planted, run_pytest, stem):
    """Otherwise the planted ones might fail for another reason than their own."""
    _, classes = planted(stem)
    good = next(name for name, test_class in classes.items() if test_class.breaks is None)
    outcomes = run_pytest(stem, f"::{good}")
    assert {test for test, outcome in outcomes.items() if outcome != {"passed"}} == set()
