from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from deepwork.cli.main import main
from deepwork.errors import DeepWorkError


@pytest.fixture(autouse=True)
def _nobodys_home(monkeypatch, tmp_path_factory):
    """The clients of the person who runs the tests are not looked at."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(project):
    """Run the command `deepwork` in the project's folder, with stdin closed."""

    def run(*arguments, options=(), cwd=project.root, **environment):
        command = [sys.executable, *options, "-m", "deepwork", *map(str, arguments)]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**os.environ, **environment}
        return subprocess.run(command, **pipes, text=True, timeout=240, cwd=cwd, env=env)

    return run


class Ended(NamedTuple):
    """What a command that ran in this process has printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def here(project, monkeypatch):
    """Run a command in this process, in the project's folder; with an answer it has a terminal at which that is typed.

    A process of its own would take most of the time of a test that runs many.
    """

    def here(*arguments, answer=None, cwd=project.root):
        monkeypatch.chdir(cwd)
        with monkeypatch.context() as patch:
            if answer is not None:
                patch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
            result = CliRunner().invoke(main, [*map(str, arguments)], input=answer, standalone_mode=False)
        error = result.exception
        if isinstance(error, DeepWorkError):
            return Ended(1, result.stdout, f"{result.stderr}Error: {error.message}\nHint: {error.hint}\n")
        if error is not None:
            raise error
        return Ended(int(result.return_value or 0), result.stdout, result.stderr)

    return here
