"""Homes and projects in which Codex, the Gemini CLI and opencode are connected, as `deepwork connect` leaves them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROGRAM = str(Path(sys.executable).parent / "deepwork")
SECONDS = 150
PROMPT = "Do what the model says"

# Codex asks at a terminal whether it may run hooks that it has not seen yet; here it has none. `required` lets its
# first turn wait for the server.
CODEX = ["codex", "exec", "--dangerously-bypass-hook-trust", "-c", "mcp_servers.deepwork.required=true", PROMPT]
# With a named model, the Gemini CLI does not ask another model for its choice.
GEMINI = ["gemini", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", f"--prompt={PROMPT}"]


@dataclass(frozen=True)
class ClientDesk:
    """A home and a project in which one client is connected, and trusts the project."""

    client: str
    project: Path
    environment: Mapping[str, str]

    @classmethod
    def make(cls, client: str, folder: Path, programs: Path, url: str = "") -> ClientDesk:
        """Set it up; `url` is where the model listens."""
        home, project = folder / "home", folder / "project"
        project.mkdir(parents=True)
        home.mkdir()
        dropped = ("CLAUDE", "ANTHROPIC", "XDG_", "GEMINI", "GOOGLE", "OPENAI", "CODEX", "OPENCODE", "DEEPWORK_")
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(dropped)},
            "HOME": str(home),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "DEEPWORK_HOOK_SECONDS": "60",  # a machine may be busy
            "GEMINI_API_KEY": "stub",
            "GOOGLE_GEMINI_BASE_URL": url,
            "SCRIPTED_KEY": "stub",
            "TERM": "xterm-256color",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
        }
        desk = cls(client, project, environment)
        desk.run("git", "init", "-q")
        desk.run(PROGRAM, "init", "--client", client)
        if write_settings := _SETTINGS.get(client):
            write_settings(home, project, url)
        return desk

    def run(self, *command: str) -> str:
        """Run a program in the project to its end, and return what it prints."""
        process = subprocess.run(
            command,
            cwd=self.project,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return process.stdout

    def work(self, *options: str) -> str:
        """Let the client's model work on a prompt until it stops, and return what the client prints."""
        command = CODEX if self.client == "codex" else GEMINI
        return self.run(*command[:-1], *options, command[-1])


def _codex(home: Path, project: Path, url: str) -> None:
    lines = [
        'model = "scripted"',
        'model_provider = "scripted"',
        "[model_providers.scripted]",
        'name = "scripted"',
        f'base_url = "{url}/v1"',
        'wire_api = "responses"',
        'env_key = "SCRIPTED_KEY"',
        f'[projects."{project}"]',
        'trust_level = "trusted"',
    ]
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("\n".join(lines))


def _gemini(home: Path, project: Path, _url: str) -> None:
    (home / ".gemini").mkdir()
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": True}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    (home / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(project): "TRUST_FOLDER"}))


_SETTINGS = {"codex": _codex, "gemini": _gemini}
