"""Strangers can build on DeepWork: wheels, a fresh environment, and a plugin written elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from deepwork import __version__
from deepwork.cli.new_plugin import PARTS, make_plugin
from deepwork.testing import Agent, review, step

ROOT = Path(__file__).parent.parent.parent

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def serve(project, monkeypatch):
    """Start `deepwork serve` in another environment, and connect to it over stdio."""

    @asynccontextmanager
    async def serve(python, *arguments):
        command = ["-m", "deepwork", "serve", "--path", str(project.root), *arguments]
        transport = StdioTransport(str(python), command, keep_alive=False, log_file=project.root / "server.log")
        async with Client(transport) as client:
            yield Agent(client)

    return serve


async def test_a_plugin_from_the_template_serves_from_wheels_alone(
    project, tmp_path, core_wheel, wheel_of, environment, run, serve
):
    plugin = make_plugin("acme", PARTS, tmp_path)
    python = environment(core_wheel, wheel_of(plugin))

    code, where = run(python, "-c", "import deepwork, deepwork_acme; print(deepwork.__file__)", cwd=tmp_path)
    assert (code, str(tmp_path) in where) == (0, True), where

    project.write_job(steps=[step("a", reviews=[review("a.md")])])
    project.write("a.md", "\n")
    async with serve(python, "--state-store", "acme", "--external-runner", "acme") as agent:
        assert (await agent.call("acme_greet", name="Ada"))["text"] == "Hello, Ada!"
        jobs = [job["name"] for job in (await agent.call("get_workflows"))["jobs"]]
        assert "acme_hello" in jobs
        begin = await agent.start()
        reviewed = await agent.finish({"a.md": "a.md"})
        assert (reviewed["status"], "a.md is empty." in reviewed["feedback"]) == ("needs_work", True)
    assert (project.state / "acme.db").exists()
    assert not list(project.state.glob("session_*.json"))

    project.write("a.md", "Something\n")
    async with serve(python, "--state-store", "acme", "--external-runner", "acme") as agent:
        reply = await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"])
        assert reply["status"] == "workflow_complete"

    assert run(python, "-m", "deepwork", "acme", "Ada", cwd=project.root) == (0, "Hello, Ada!\n")


async def test_the_plugins_own_tests_pass_there(tmp_path, core_wheel, wheel_of, environment, run):
    plugin = make_plugin("acme", PARTS, tmp_path)
    python = environment(core_wheel, wheel_of(plugin))
    code, output = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", cwd=plugin)
    assert code == 0, output


async def test_two_plugins_that_clash_are_both_named(project, tmp_path, core_wheel, wheel_of, environment, run):
    """A name clash of stores; both come from strangers, and neither wins."""
    wheels = []
    for name in ("acme", "rival"):
        plugin = make_plugin(name, ["stores"], tmp_path)
        module = plugin / "src" / f"deepwork_{name}" / "plugin.py"
        module.write_text(module.read_text().replace(f'name="{name}"', 'name="sqlite"'))
        wheels.append(wheel_of(plugin))
    python = environment(core_wheel, *wheels)
    message = (
        "Error: state store 'sqlite' is offered twice:\n"
        "  - deepwork-acme 0.1.0 (plugin 'acme')\n"
        "  - deepwork-rival 0.1.0 (plugin 'rival')\n"
        "Hint: Keep one of them: add 'deepwork-acme' or 'deepwork-rival' to `plugins.block` in .deepwork/config.yml "
        "(below the key `plugins` if it is there).\n"
    )
    assert run(python, "-m", "deepwork", "serve", cwd=project.root) == (1, message)
    project.write(".deepwork/config.yml", "plugins: {block: [deepwork-acme]}\n")
    assert run(python, "-m", "deepwork", "serve", cwd=project.root) == (0, "")


async def test_the_command_that_makes_a_plugin_ships_in_the_wheel(tmp_path, core_wheel, environment, run):
    python = environment(core_wheel)
    command = (python, "-m", "deepwork", "new-plugin", "acme", "--hooks", "tools,stores")
    code, output = run(*command, cwd=tmp_path)
    assert (code, output.splitlines()[0]) == (0, "created  deepwork-acme")
    expected = make_plugin("acme", ["tools", "stores"], tmp_path / "here")
    distribution = tmp_path / "deepwork-acme"
    contents = [
        {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
        for root in (expected, distribution)
    ]
    assert contents[0] == contents[1]
    assert ".gitignore" in contents[0]


def test_whoever_builds_from_source_gets_the_same_files(tmp_path, core_wheel):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=600)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        sources = {name.partition("/src/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(core_wheel) as archive:
        modules = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert modules - sources == set()


async def test_the_wheel_says_its_version(core_wheel, environment, run, tmp_path):
    python = environment(core_wheel)
    code, output = run(python, "-c", "import json, deepwork; print(json.dumps(deepwork.__version__))", cwd=tmp_path)
    assert (code, json.loads(output)) == (0, __version__)
