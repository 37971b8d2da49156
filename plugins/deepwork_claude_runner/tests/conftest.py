"""What the tests share: a fake `claude` on PATH, and a project whose step it reviews."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deepwork.testing import review, step


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _nobodys_environment(monkeypatch, tmp_path_factory):
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_", "ANTHROPIC_", "CLAUDE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


PS = shutil.which("ps") or "ps"  # before a test changes PATH


class FakeClaude:
    """The program, as a file on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "claude"
        source = (Path(__file__).parent / "fake_claude.py").read_text()
        self.program.write_text(f"#!{sys.executable} -IS\n{source}")
        self.program.chmod(0o755)
        self.behaves(mode="pass")

    def behaves(self, *several: dict[str, Any], **one: Any) -> None:
        """Say what it does; of several behaviours the first whose `about` stands in its input."""
        (self.folder / "behaviour.json").write_text(json.dumps([*several, *([one] if one else [])]))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """What it was asked so far."""
        return self._lines("calls")

    def spans(self) -> list[dict[str, float]]:
        """Say when each review began and ended."""
        return self._lines("spans")

    def survivors(self) -> list[int]:
        """Name the processes of reviews, children included, that still run."""
        return [pid for pid in [*self._lines("pids"), *self._lines("children")] if _lives(pid)]

    def started(self, count: int = 1, seconds: float = 10) -> None:
        """Wait until so many have begun."""
        deadline = time.monotonic() + seconds
        while len(self._lines("pids")) < count:
            assert time.monotonic() < deadline, "no review has begun"
            time.sleep(0.01)

    def _lines(self, name: str) -> list[Any]:
        file = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _lives(pid: int) -> bool:
    """Whether it runs, or is a zombie that this server has left; orphans are for the system's first process to bury."""
    done = subprocess.run([PS, "-o", "stat=,ppid=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, parent = done.stdout.strip().partition(" ")
    return bool(state) and not (state.startswith("Z") and parent.strip() == "1")


@pytest.fixture
def claude(tmp_path, monkeypatch):
    """A fake `claude` that is found first on PATH; whatever it leaves running is ended after the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    fake = FakeClaude(folder)
    yield fake
    for pid in fake.survivors():
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def reviewed(project, claude):
    """A project whose first step is reviewed by two criteria."""
    asked = {"Complete": "Is everything said?", "True": "Is it true?"}
    project.write_job(steps=[step("a", reviews=[review(quality_criteria=asked)]), step("b")])
    project.write("a.md", "The work\n")
    project.write("b.md")
    return project


@pytest.fixture
def history(project):
    """Give the details of the history's entries of one kind."""

    def read(kind: str) -> list[dict[str, Any]]:
        [file] = project.state.glob("session_*.json")
        return [entry["detail"] for entry in json.loads(file.read_text())["history"] if entry["kind"] == kind]

    return read
