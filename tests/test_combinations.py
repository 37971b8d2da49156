"""Wheels of the core with each plugin alone, with every two, and with all: each brings there what it brings here."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import tomllib
from itertools import combinations
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

ROOT = Path(__file__).parent.parent
NEEDS = {
    file.parent.name: tomllib.loads(file.read_text())["project"]["dependencies"]
    for file in sorted(ROOT.glob("plugins/deepwork_*/pyproject.toml"))
}
UV = [sys.executable, "-m", "uv"]

pytestmark = [pytest.mark.external, pytest.mark.slow]


def output(*command, **options):
    """Run a command that has to work, and return what it prints."""
    process = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=280, **options
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def with_needed(names):
    """Add the plugins that these depend on."""
    needed = {re.match(r"[\w-]+", need)[0].replace("-", "_") for name in names for need in NEEDS[name]}
    return frozenset(names) | needed & {*NEEDS}


# Several choices may come to the same, because a plugin brings what it needs.
TOGETHER = {with_needed(names): names for names in [*combinations(NEEDS, 2), *((name,) for name in NEEDS), (*NEEDS,)]}


def shown(names):
    return "+".join(TOGETHER[names]) if len(names) < len(NEEDS) else "all"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory, worker_id):
    """The wheel of each distribution, built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    folder = (folder if worker_id == "master" else folder.parent) / "wheels"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("*.whl")):
            for project in (ROOT, *(ROOT / "plugins" / name for name in NEEDS)):
                output(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=project)
    return {file.name.partition("-")[0]: file for file in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment whose packages each test exchanges, so that what stays is compiled once."""
    folder = tmp_path_factory.mktemp("environment")
    output(*UV, "venv", "--quiet", "--python", sys.executable, folder)
    return folder


class User:
    """A user with an empty home, a project, and one environment."""

    def __init__(self, folder, python):
        self.project, self.python = folder / "project", python
        output("git", "init", "--quiet", self.project)
        hidden = ("DEEPWORK_", "XDG_", "PYTHON")
        self.variables = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
        self.variables |= {"HOME": str(folder), "DEEPWORK_STRICT_PLUGINS": "1"}

    def deepwork(self, *arguments):
        """Run a command, and return its JSON."""
        command = (self.python, "-m", "deepwork", *arguments, "--json")
        return json.loads(output(*command, cwd=self.project, env=self.variables))

    def plugins(self):
        """Return what each plugin adds, by its package; nothing may be wrong with one."""
        plugins = self.deepwork("plugins")["plugins"]
        assert [plugin for plugin in plugins if plugin["status"] != "active" or plugin["warnings"]] == []
        return {plugin["distribution"].replace("-", "_"): plugin["adds"] for plugin in plugins}

    async def tools(self):
        """Return the names that a server lists."""
        transport = StdioTransport(
            str(self.python), ["-m", "deepwork", "serve"], env=self.variables, cwd=str(self.project), keep_alive=False
        )
        async with Client(transport) as client:
            return {tool.name for tool in await client.list_tools()}


@pytest.fixture(scope="module")
def added_here(tmp_path_factory):
    """What each plugin adds in the environment of the tests, where all of them are."""
    return User(tmp_path_factory.mktemp("here"), sys.executable).plugins()


@pytest.mark.anyio
@pytest.mark.parametrize("names", TOGETHER, ids=shown)
async def test_plugins_bring_what_they_have_whatever_is_beside_them(wheels, environment, added_here, tmp_path, names):
    python = environment / "bin" / "python"
    files = [wheels["deepwork"], *(wheels[name] for name in sorted(names))]
    requirements = "".join(f"{file.name.partition('-')[0].replace('_', '-')} @ {file.as_uri()}\n" for file in files)
    exact = output(*UV, "pip", "compile", "--quiet", "--python", python, "-", input=requirements)
    (tmp_path / "exact.txt").write_text(exact)
    output(*UV, "pip", "sync", "--quiet", "--python", python, tmp_path / "exact.txt")
    output(*UV, "pip", "check", "--quiet", "--python", python)

    user = User(tmp_path, python)
    added = user.plugins()
    assert added == {name: added_here[name] for name in names}
    assert user.deepwork("doctor")["ok"]
    tools = {tool for adds in added.values() for tool in adds.get("tool", [])}
    assert await user.tools() == tools | {"get_workflows", "start_workflow", "finished_step", "abort_workflow"}
