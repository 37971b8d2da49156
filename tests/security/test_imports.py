"""Nothing is imported from a project, and the user's own folders are never in it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from deepwork.errors import ConfigError
from deepwork.project.config import load_config

EVIL = "import pathlib; pathlib.Path(__file__).with_name('ran').touch()\n"
MODULES = ["click.py", "yaml.py", "pydantic.py", "fastmcp.py", "json.py", "anyio/__init__.py"]
META = "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n"


@pytest.fixture
def hostile(project):
    """A project with modules of the names that we import, and with a distribution that offers a plugin."""
    project.write_job()
    for name in MODULES:
        project.write(name, EVIL)
    project.write("evil.py", EVIL)
    project.write("evil-1.0.dist-info/METADATA", META)
    project.write("evil-1.0.dist-info/entry_points.txt", "[deepwork]\nevil = evil\n")
    return project


def run(project, *command, **environment):
    # With a variable that Python reads it is no quick start: that has imported everything before it is in the folder.
    env = {**os.environ, "PYTHONHASHSEED": "0", **environment}
    return subprocess.run([*command], cwd=project.root, env=env, capture_output=True, text=True, timeout=240, input="")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["doctor"], ["serve"], ["jobs", "list"], ["plugins"]], ids=" ".join)
@pytest.mark.parametrize("options", [["-m"], ["-P", "-m"]], ids=" ".join)
def test_a_command_in_a_hostile_folder_imports_nothing_from_it(hostile, command, options):
    """F7, a08: `click.py` beside it ran, and `evil-1.0.dist-info` was loaded as an installed plugin."""
    result = run(hostile, sys.executable, *options, "deepwork", *command)
    assert result.returncode == 0, result.stderr
    assert "evil" not in result.stdout
    assert not list(hostile.root.rglob("ran"))


@pytest.mark.parametrize("path", ["", ".", "{root}", ":{elsewhere}", "./x/.."])
def test_a_start_that_would_import_from_the_project_is_refused(hostile, tmp_path, path):
    value = path.format(root=hostile.root, elsewhere=tmp_path) or os.pathsep
    options = ["-P", "-c", "from deepwork.__main__ import run; run()", "jobs", "list"]
    result = run(hostile, sys.executable, *options, PYTHONPATH=value)
    assert result.returncode == 1
    assert "Error: Python would import modules from" in result.stderr
    assert "Hint: " in result.stderr


def test_a_folder_of_the_project_on_the_path_is_refused_from_elsewhere_too(hostile, tmp_path):
    hostile.write("lib/x.py")
    code = "from deepwork.__main__ import run; run()"
    command = [sys.executable, "-P", "-c", code, "jobs", "list", "--path", str(hostile.root)]
    env = {**os.environ, "PYTHONPATH": str(hostile.root / "lib")}
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
    assert result.returncode == 1
    assert "which lies in the project" in result.stderr


@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "XDG_STATE_HOME"])
@pytest.mark.parametrize("value", [".config", "./x", "{root}", "{root}/home", "{link}"])
def test_folders_of_the_user_that_a_repository_could_bring_are_refused(project, tmp_path, variable, value):
    """F16, a09: with a relative folder the repository brings "the user's" configuration, and its program ran."""
    (tmp_path / "link").symlink_to(project.root)
    folder = value.format(root=project.root, link=tmp_path / "link")
    with pytest.raises(ConfigError, match=r"not an absolute path|lies in the project"):
        load_config(project.root, {**os.environ, variable: folder})


def test_a_home_in_the_project_is_refused(project, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(project.root / "home"))
    with pytest.raises(ConfigError, match="lies in the project"):
        load_config(project.root, os.environ)
