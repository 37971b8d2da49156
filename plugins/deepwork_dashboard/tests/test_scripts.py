"""The scripts of the pages pass TypeScript's check, oxlint and prettier, which come from npm once, into `.clients`."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.external

PLUGIN = Path(__file__).parents[1]
SCRIPTS = "src/deepwork_dashboard/static/js"
TOOLS = ("oxlint@1.94.0", "prettier@3.10.1", "typescript@7.0.2")
FOLDER = PLUGIN.parents[1] / ".clients" / "-".join(tool.replace("@", "_") for tool in TOOLS)


@pytest.fixture(scope="module")
def programs():
    """Return the folder of the programs."""
    npm = shutil.which("npm")
    if npm is None and not os.environ.get("CI"):
        pytest.skip("npm is missing")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not (FOLDER / "complete").exists():
            install = [npm, "install", "--prefix", FOLDER, "--ignore-scripts", "--no-audit", "--no-fund", *TOOLS]
            subprocess.run(install, check=True, capture_output=True, timeout=250)
            (FOLDER / "complete").touch()
    return FOLDER / "node_modules" / ".bin"


@pytest.fixture
def run(programs):
    """Run one of the programs in the plugin's folder, and return its exit code and its lines."""

    def run(name, *arguments):
        process = subprocess.run(
            [programs / name, *arguments], cwd=PLUGIN, capture_output=True, text=True, timeout=120, check=False
        )
        return process.returncode, (process.stdout + process.stderr).splitlines()

    return run


def test_types_fit(run):
    """The vendored library is minified, and as such has complaints of its own."""
    code, lines = run("tsc", "--project", ".", "--pretty", "false")
    assert code in (0, 1, 2), lines
    own = [line for line in lines if not line.startswith((" ", "src/deepwork_dashboard/static/vendor/"))]
    assert own == []


def test_the_check_of_types_sees_the_scripts(run):
    """Each script is checked that a page may load."""
    _, lines = run("tsc", "--project", ".", "--listFilesOnly")
    checked = {Path(line).relative_to(PLUGIN).as_posix() for line in lines if f"/{SCRIPTS}/" in line}
    assert checked == {file.relative_to(PLUGIN).as_posix() for file in (PLUGIN / SCRIPTS).rglob("*.js")}


def test_the_linter_finds_nothing(run):
    assert run("oxlint", "--deny-warnings", SCRIPTS)[0] == 0


def test_all_files_are_formatted(run):
    code, lines = run("prettier", "--check", "src/**/static/**/*.{js,css,html}")
    assert code == 0, lines
