"""How often an agent that forgets its step is reminded: `python tools/figures_hooks.py [--agents 20]`.

Each agent is the real Claude Code (`tools/clients.py` installs it) with a model that starts a workflow and then says
that it is done, as often as it is asked. `deepwork init --client claude` has set it up in an empty home. A second
window in the same project, which has started nothing, stops too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, __file__.rpartition("/")[0])
from rows import Row, show
from scripted_model import END, Model

from clients import FOLDER, install

PROGRAM = str(Path(sys.executable).parent / "deepwork")
START = {
    "id": "toolu_start",
    "tool": "mcp__deepwork__start_workflow",
    "input": {"goal": "newcomers", "job_name": "project_tour", "workflow_name": "write_tour"},
}
FEEDBACK = "Stop hook feedback:"  # so Claude Code begins the turn that a hook has caused
SECONDS = 120


class RecordingModel(Model):
    """A model that keeps what it was last sent."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Any] = []

    def next_turn(self, body: dict[str, Any]) -> dict[str, Any]:
        """Keep the conversation, and give the next turn; after the script the agent says that it is done."""
        self.messages = body["messages"]
        if self.turns.empty():
            self.turns.put(END)
        return super().next_turn(body)

    @property
    def reminders(self) -> int:
        """How often the last conversation has the reminder."""
        return json.dumps(self.messages).count(FEEDBACK)


@dataclass(frozen=True)
class Desk:
    """A home and a project in which Claude Code is connected, with the approval that it asks its user for."""

    project: Path
    environment: dict[str, str]

    @classmethod
    def make(cls, folder: Path, programs: Path) -> Desk:
        """Set it up as the README says."""
        home, project = folder / "home", folder / "project"
        project.mkdir(parents=True)
        (home / ".claude").mkdir(parents=True)
        (home / ".claude" / "settings.json").write_text('{"enabledMcpjsonServers": ["deepwork"]}')
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "ANTHROPIC", "XDG_"))
        }
        inherited["DEEPWORK_HOOK_SECONDS"] = "60"  # what is measured is whether, on a machine however busy
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        desk = cls(project, {**inherited, "HOME": str(home), "PATH": path, "ANTHROPIC_API_KEY": "stub"})
        desk.run(PROGRAM, "init", "--client", "claude")
        return desk

    def run(self, *command: str, url: str = "") -> str:
        """Run a program in the project, to its end."""
        environment = {**self.environment, "ANTHROPIC_BASE_URL": url}
        done = subprocess.run(
            command,
            cwd=self.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return done.stdout

    def agent(self, *turns: dict[str, Any], prompt: str = "Do what the model says") -> RecordingModel:
        """Let one window work on a prompt until it stops, and give its model."""
        model = RecordingModel()
        for turn in turns:
            model.turns.put(turn)
        try:
            self.run("claude", "-p", "--allowedTools", "mcp__deepwork", "--", prompt, url=model.url)
        finally:
            model.close()
        return model


def rows(agents: int) -> Iterator[Row]:
    """Measure."""
    programs = install(FOLDER)
    reached, reminded, twice, others = 0, 0, 0, 0
    for _ in range(agents):
        with tempfile.TemporaryDirectory() as folder:
            desk = Desk.make(Path(folder), programs)
            model = desk.agent(START)
            reached += "toolu_start" in model.results and not model.results["toolu_start"].get("is_error")
            reminded += model.reminders >= 1
            twice += model.reminders > 1
            others += desk.agent().reminders
    yield Row("first tool call after the README's lines", "all", f"{reached} of {agents}", reached == agents)
    yield Row("forgetful agents reminded", "all", f"{reminded} of {agents}", reminded == agents)
    yield Row("reminded twice of one state", "0", str(twice), not twice)
    yield Row("another window reminded", "0", str(others), not others)


@click.command()
@click.option("--agents", default=20, show_default=True)
def main(agents: int) -> None:
    """Measure."""
    show(rows(agents))


if __name__ == "__main__":
    main()
