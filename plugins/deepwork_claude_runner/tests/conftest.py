"""What the tests share: a fake `claude` on PATH, and a project whose step it reviews."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from deepwork.testing import review, step
from deepwork.testing.wire import PATIENCE


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path_factory):
    """Hide the settings of the user who runs the tests."""
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

    def behaves(self, *behaviours: dict[str, Any], **behaviour: Any) -> None:
        """Set what it does; of several behaviours it takes the first whose `about` is in its input."""
        (self.folder / "behaviour.json").write_text(json.dumps([*behaviours, *([behaviour] if behaviour else [])]))

    @property
    def calls(self) -> list[dict[str, Any]]:
        """How it was called so far."""
        return self._lines("calls")

    def spans(self) -> list[dict[str, float]]:
        """Return the times at which each review started and ended."""
        return self._lines("spans")

    def survivors(self) -> list[int]:
        """Return the ids of the processes of reviews that still run, children included."""
        return [pid for pid in [*self._lines("pids"), *self._lines("children")] if _lives(pid)]

    def started(self, count: int = 1, seconds: float = PATIENCE) -> None:
        """Wait until so many reviews have started."""
        deadline = time.monotonic() + seconds
        while len(self._lines("pids")) < count:
            assert time.monotonic() < deadline, "no review has started"
            time.sleep(0.01)

    def _lines(self, name: str) -> list[Any]:
        file = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _lives(pid: int) -> bool:
    """Whether a process runs, or is a zombie of this server. A zombie of process 1 is not ours to wait for."""
    completed = subprocess.run([PS, "-o", "stat=,ppid=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, parent = completed.stdout.strip().partition(" ")
    return bool(state) and not (state.startswith("Z") and parent.strip() == "1")


@pytest.fixture
def claude(tmp_path, monkeypatch):
    """A fake `claude` that is found first on PATH; everything that it leaves running is ended after the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    fake = FakeClaude(folder)
    yield fake
    for pid in fake.survivors():
        with suppress(ProcessLookupError):  # it has ended by itself meanwhile
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def reviewed(project, claude):
    """A project whose first step is reviewed by two criteria."""
    criteria = {"Complete": "Is everything said?", "True": "Is it true?"}
    project.write_job(steps=[step("a", reviews=[review(quality_criteria=criteria)]), step("b")])
    project.write("a.md", "The work\n")
    project.write("b.md")
    return project


@pytest.fixture
def history(project):
    """Return the details of the history's entries of one kind."""

    def read(kind: str) -> list[dict[str, Any]]:
        [file] = project.state.glob("session_*.json")
        return [entry["detail"] for entry in json.loads(file.read_text())["history"] if entry["kind"] == kind]

    return read
