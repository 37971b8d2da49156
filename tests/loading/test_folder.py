"""A plugin may be one file in a folder that the user names."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

ACME = """
from deepwork import hookimpl
from deepwork.api import ToolSet, ToolSpec


def greet(name: str) -> str:
    \"\"\"Greet somebody.\"\"\"
    return f"hello {name}"


@hookimpl
def deepwork_tool_sets():
    yield ToolSet("acme", [ToolSpec("greet", greet, title="Greet", output="text")], prefix="acme_")
"""


@pytest.fixture
def folder(tmp_path):
    """Make a folder with the plugin `acme_file`, and a module that is not a plugin."""
    folder = tmp_path / "my-plugins"
    folder.mkdir()
    (folder / "acme_file.py").write_text(ACME)
    (folder / "_shared.py").write_text("1 / 0")
    return folder


@pytest.fixture
def listed(project):
    def listed(*options, **environment):
        command = [sys.executable, "-m", "deepwork", "plugins", "--json", "--path", str(project.root), *options]
        env = {**os.environ, **environment}
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=240)
        assert ended.stdout, ended.stderr
        return {row["name"]: row for row in json.loads(ended.stdout)["plugins"] if row["status"] != "blocked"}

    return listed


@pytest.mark.anyio
async def test_an_agent_uses_a_tool_of_a_plugin_that_is_one_file(project, folder):
    async with project.stdio_agent("--plugins-dir", str(folder)) as agent:
        assert await agent.text("acme_greet", name="Ada") == "hello Ada"


def test_every_command_takes_the_folder_from_the_environment(listed, folder):
    by_option, by_variable = listed("--plugins-dir", str(folder)), listed(DEEPWORK_PLUGINS_DIR=str(folder))
    assert by_option == by_variable
    assert by_option["acme_file"]["adds"] == {"tool set": ["acme"], "tool": ["acme_greet"]}


def test_a_file_that_cannot_be_imported_is_named_with_its_line(listed, folder):
    (folder / "broken_file.py").write_text("import os\n1 / 0\n")
    rows = listed("--plugins-dir", str(folder))
    assert rows["broken_file"]["cause"] == "ZeroDivisionError: division by zero (broken_file.py, line 2)"
    assert rows["acme_file"]["status"] == "active"


def test_a_file_with_the_name_of_a_module_does_not_replace_it(listed, folder):
    (folder / "json.py").write_text("raise SystemExit")
    assert "is the name of another module; rename the file" in listed("--plugins-dir", str(folder))["json"]["cause"]


def test_a_folder_that_is_not_there_is_an_error(serve, tmp_path):
    ended = serve("--plugins-dir", str(tmp_path / "nowhere"))
    assert ended.returncode == 1
    assert "nowhere' cannot be read: No such file or directory" in ended.stderr


def test_a_project_cannot_name_a_folder_of_plugins(project, serve, folder):
    project.write(".deepwork/config.yml", f"plugins: {{dir: {folder}}}")
    assert "unknown key 'dir'" in serve().stderr
