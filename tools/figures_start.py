"""What commands cost in processor time: `python tools/figures_start.py`, in an environment without editable plugins.

The unit is a bare `python -c "import click"`. Each figure is the smallest of several runs, as other work on the machine
can only add to it.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, __file__.rpartition("/")[0])
from rows import Row, show

from deepwork.testing import DeepworkProject

PROGRAM = str(Path(sys.executable).parent / "deepwork")
SESSIONS = 2200


def processor_time(command: list[str], runs: int, folder: Path, stdin: bytes = b"") -> float:
    """Give the milliseconds of processor time of a command."""
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, input=stdin, capture_output=True, cwd=folder, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times) * 1000


async def begun(folder: Path) -> dict[str, Any]:
    """Start a workflow in a project, and give its session as the store `json` has written it."""
    project = DeepworkProject(folder)
    project.write_job("notes")
    async with project.agent() as agent:
        await agent.start("notes")
    [file] = project.state.glob("session_*.json")
    session: dict[str, Any] = json.loads(file.read_text())
    file.unlink()
    return session


def write_sessions(folder: Path, count: int) -> None:
    """Write sessions as the store `json` does; all but the first five are over."""
    session = asyncio.run(begun(folder))
    for number in range(count):
        at = f"2026-11-01T10:00:00.{number:06}+00:00"
        own = {"session_id": f"{number:032x}", "status": "active" if number < 5 else "completed"}
        file = folder / ".deepwork" / "tmp" / f"session_{own['session_id']}.json"
        file.write_text(json.dumps({**session, **own, "started_at": at, "updated_at": at}, indent=2) + "\n")


def rows(runs: int) -> Iterator[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        folder.mkdir()
        os.environ["XDG_STATE_HOME"] = str(Path(name) / "state")
        write_sessions(folder, SESSIONS)
        unit = processor_time([sys.executable, "-c", "import click"], runs, folder)
        version = processor_time([PROGRAM, "--version"], runs, folder)
        call = {"session_id": "w", "tool_name": "mcp__deepwork__finished_step", "cwd": str(folder)}
        event = json.dumps(call).encode()
        # From its first call on a session is the client's own, and comes with its resume text.
        own = json.dumps({**call, "tool_input": {"session_id": f"{0:032x}"}, "source": "compact"}).encode()
        commands = [
            ("--version", ["--version"], 3.5, b""),
            ("status --statusline", ["status", "--statusline"], 3.5, b""),
            ("hook PostToolUse", ["hook", "PostToolUse"], 3.5, event),
            ("hook Stop", ["hook", "Stop"], 3.5, event),
            ("hook PostToolUse, own session", ["hook", "PostToolUse"], 3.5, own),
            ("hook SessionStart", ["hook", "SessionStart"], 3.5, own),
            ("hook PreCompact", ["hook", "PreCompact"], 3.5, own),
            ("--help", ["--help"], 5, b""),
        ]
        for title, arguments, goal, stdin in commands:
            time = processor_time([PROGRAM, *arguments], runs, folder, stdin)
            yield Row(title, f"<= {goal} x import click", f"{time / unit:.1f} x ({time:.0f} ms)", time <= goal * unit)
        time = processor_time([PROGRAM, "sessions", "list"], runs, folder)
        measured = f"{time / version:.1f} x ({time:.0f} ms)"
        yield Row(f"sessions list of {SESSIONS:,}", "<= 3 x --version", measured, time <= 3 * version)


@click.command()
@click.option("--runs", default=5, show_default=True)
def main(runs: int) -> None:
    """Measure."""
    show(rows(runs))


if __name__ == "__main__":
    main()
