"""`deepwork demo`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import click

from deepwork.commands.terminal import say
from deepwork.errors import DeepWorkError

# A gate of the project: it wants the tour to say how the project is tried.
GATE = """\
import sys

if "python words.py" not in open("TOUR.md", encoding="utf-8").read():
    print("TOUR.md does not say how to try the project.")
    sys.exit(1)
"""
CONFIG = """\
version: "1.0"
quality_gate:
  runner: tour_check
  commands:
    tour_check: {{run: [{python}, check.py], verdict: exit_code, folder: project}}
"""


SECONDS = 180  # a machine may be busy


@click.command(epilog="Exits with 1 if the server does not do what is shown.")
def demo() -> None:
    """Watch a scripted agent on a real server: a step refused, a server killed, a review failed and passed.

    The server, the protocol, the files and the gate are real; what an agent would think is written down. Everything
    happens in a folder of its own, which is removed again.
    """
    from deepwork.builtin.demo.acts import play

    say("A real server, and an agent whose part is written down. It takes some seconds.")
    with tempfile.TemporaryDirectory(prefix="deepwork-demo-", ignore_cleanup_errors=True) as folder:
        project = Path(folder) / "project"
        environment = _environment(Path(folder) / "home")
        _prepare(project, environment)
        try:
            anyio.run(_within_time, play, project, environment)
        except DeepWorkError:
            raise
        except Exception as error:
            raise DeepWorkError(
                f"the server did not answer: {str(error) or type(error).__name__}", hint="deepwork doctor"
            ) from error
    say("")
    say("Nothing of it is left. In your project: `deepwork init` connects your own agent.")


async def _within_time(play: Callable[..., Awaitable[None]], project: Path, environment: dict[str, str]) -> None:
    with anyio.fail_after(SECONDS):
        await play(project, environment)


def _environment(home: Path) -> dict[str, str]:
    """Return the variables of a user who has nothing set up, with a home of their own."""
    home.mkdir()
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DEEPWORK_", "XDG_")) and name != "HOME"
    }
    return {**variables, "HOME": str(home)}


def _prepare(project: Path, environment: dict[str, str]) -> None:
    """Make a small project with the packaged job, and a gate that its user has approved."""
    project.mkdir()
    (project / "README.md").write_text("# words\n\nCounts words.\n", encoding="utf-8")
    (project / "words.py").write_text("import sys\nprint(len(open(sys.argv[1]).read().split()))\n", encoding="utf-8")
    (project / "check.py").write_text(GATE, encoding="utf-8")
    (project / ".deepwork").mkdir()
    (project / ".deepwork" / "config.yml").write_text(
        CONFIG.format(python=json.dumps(sys.executable)), encoding="utf-8"
    )
    for words in (["init"], ["trust", "--yes"]):
        command = [sys.executable, "-P", "-m", "deepwork", *words, "--path", str(project)]
        ended = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise DeepWorkError(f"`deepwork {' '.join(words)}` failed: {ended.stderr.strip()}")
