"""`tools/clients.py`, with programs that pretend to be node and npm."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "clients.py"
UNAVAILABLE = 69

NPM = """#!/bin/sh
echo installed >> "$NPM_LOG"
sleep 0.2
mkdir -p node_modules/.bin
printf '#!/bin/sh\\necho "$@"; exit 3\\n' > node_modules/.bin/inspect
chmod +x node_modules/.bin/inspect
"""


class Machine:
    """A machine with exactly these programs."""

    def __init__(self, folder):
        self.log = folder / "npm.log"
        self.clients = folder / "clients"
        self._bin = folder / "bin"
        self._bin.mkdir()
        for name in ("sh", "mkdir", "chmod", "sleep"):
            (self._bin / name).symlink_to(f"/bin/{name}")
        self._command = [sys.executable, TOOL, "--folder", self.clients]
        self._options = {
            "env": {"PATH": str(self._bin), "NPM_LOG": str(self.log)},
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }

    def has(self, name, script):
        (self._bin / name).write_text(script)
        (self._bin / name).chmod(0o755)

    def start(self, *arguments):
        return subprocess.Popen([*self._command, *arguments], **self._options)

    def run(self, *arguments, command=None):
        return subprocess.run([*(command or self._command), *arguments], check=False, **self._options)

    def manifest(self):
        [file] = self.clients.glob("*/package.json")
        return json.loads(file.read_text())


@pytest.fixture
def machine(tmp_path):
    machine = Machine(tmp_path)
    machine.has("node", "#!/bin/sh\necho v22.19.0\n")
    machine.has("npm", NPM)
    return machine


def test_it_prints_where_the_programs_are(machine):
    result = machine.run()
    assert result.returncode == 0
    assert (Path(result.stdout.strip()) / "inspect").exists()


def test_it_runs_a_program_with_its_arguments(machine):
    result = machine.run("inspect", "--cli", "a b")
    assert (result.returncode, result.stdout) == (3, "--cli a b\n")


def test_everything_is_installed_inside_of_the_checkout(machine, tmp_path):
    tool = tmp_path / "checkout" / "tools" / TOOL.name
    tool.parent.mkdir(parents=True)
    shutil.copy(TOOL, tool)
    before = {*tmp_path.rglob("*")}
    result = machine.run(command=[sys.executable, tool])
    assert Path(result.stdout.strip()).is_relative_to(tmp_path / "checkout" / ".clients")
    new_paths = {path for path in {*tmp_path.rglob("*")} - before if not path.is_relative_to(tmp_path / "checkout")}
    assert new_paths == {machine.log}


def test_an_unknown_program_is_named(machine):
    result = machine.run("nobody")
    assert result.returncode == 2
    assert "there is no program 'nobody'" in result.stderr


def test_many_at_once_install_once(machine):
    started = [machine.start() for _ in range(3)]
    assert [process.communicate()[1] for process in started] == ["", "", ""]
    assert machine.log.read_text() == "installed\n"


def test_every_version_is_exact(machine):
    machine.run()
    versions = machine.manifest()["dependencies"].values()
    assert versions
    assert [version for version in versions if not version[0].isdigit()] == []


@pytest.mark.parametrize(("version", "added"), [("v20.20.2", True), ("v22.18.0", True), ("v22.19.0", False)])
def test_a_newer_node_comes_along_where_the_machines_own_is_too_old(machine, version, added):
    machine.has("node", f"#!/bin/sh\necho {version}\n")
    machine.run()
    assert any(name.startswith("node-") for name in machine.manifest()["dependencies"]) == added


@pytest.mark.parametrize("missing", ["node", "npm"])
def test_without_node_or_npm_it_says_so(machine, tmp_path, missing):
    (tmp_path / "bin" / missing).unlink()
    result = machine.run()
    assert (result.returncode, result.stderr) == (UNAVAILABLE, "Error: node or npm is missing\n")


def test_what_npm_says_is_told_and_the_next_try_begins_anew(machine):
    machine.has("npm", "#!/bin/sh\nmkdir -p node_modules/.bin\necho the registry is away >&2\nexit 1\n")
    result = machine.run()
    assert (result.returncode, result.stderr) == (
        UNAVAILABLE,
        "Error: npm cannot install the clients: the registry is away\n",
    )
    machine.has("npm", NPM)
    assert machine.run("inspect").returncode == 3
