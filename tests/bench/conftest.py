"""Runs the measuring program, and servers to be measured that do one thing each."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from deepwork.testing.wire import PATIENCE

ROOT = Path(__file__).parents[2]

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]  # processes are looked into by /proc

# A server of a few lines. What it does besides stands where `{extra}` is; `answer` can be replaced there.
SERVER = """
import json, sys, time

def answer(request):
    tools = [{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {}}}}]
    send(request, {"tools": tools, "content": [], "structuredContent": request["params"]})

def send(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)

def at_end():
    pass

{extra}

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        answer(request)
at_end()
"""


@dataclass
class Ran:
    code: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def bench():
    """Run `python -m bench`."""

    def bench(*arguments):
        command = [sys.executable, "-m", "bench", *map(str, arguments)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
        return Ran(result.returncode, result.stdout, result.stderr)

    return bench


@pytest.fixture
def command():
    """Run the same in this process: most of what a process of its own takes are imports."""
    from bench.__main__ import main

    def command(*arguments):
        result = CliRunner().invoke(main, [*map(str, arguments)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return command


@pytest.fixture
def a_server(tmp_path):
    """Write a server, and return the command that starts it."""

    def a_server(extra=""):
        file = tmp_path / "server.py"
        file.write_text(SERVER.replace("{extra}", extra))
        return f"python {shlex.quote(str(file))}"

    return a_server


@pytest.fixture
def launcher(tmp_path):
    """Start servers as the runs do."""
    from bench.client import Era
    from bench.contestants import Contestant, Launcher

    def launch(command, era=Era.STATELESS):
        return Launcher(tmp_path, era).started(Contestant("one", command), tmp_path)

    return launch


@pytest.fixture
def measured(tmp_path):
    """Make what a run would have written that has measured every figure."""
    from bench.client import Era
    from bench.contestants import OURS, Contestant, Launcher
    from bench.goals import FIGURES
    from bench.measure import Run, Sizes
    from bench.report import results

    release = Contestant("0.9.3", f"{tmp_path}/release-0.9.3/bin/deepwork serve --path {{project}}")
    run = Run(tmp_path, [*OURS, release], Launcher(tmp_path, Era.STATELESS), Sizes(), 3)
    for figure in FIGURES:
        run.pairs[figure.key, "deepwork"] = [(2.0, 4.0), (3.0, 4.0), (2.5, 5.0)]
    facts = results(run, command="python -m bench", machine={"processor": "2 x any", "file system": "ext4"})
    return json.loads(json.dumps(facts))
