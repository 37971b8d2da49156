"""A home and a project in which the real Claude Code is connected, and a model that records what it is sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from scripted_model import END, Model

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
        """Keep the conversation, and return the next turn; after the script the agent says that it is done."""
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
        process = subprocess.run(
            command,
            cwd=self.project,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return process.stdout

    def agent(self, *turns: dict[str, Any], prompt: str = "Do what the model says") -> RecordingModel:
        """Let one window work on a prompt until it stops, and return its model."""
        model = RecordingModel()
        for turn in turns:
            model.turns.put(turn)
        try:
            self.run("claude", "-p", "--allowedTools", "mcp__deepwork", "--", prompt, url=model.url)
        finally:
            model.close()
        return model
