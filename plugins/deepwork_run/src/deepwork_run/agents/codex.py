"""Codex, headless: `codex exec --json`."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from deepwork.api import PluginContext
from deepwork.ports.agent import AgentEvent, AgentTask, Called, Failed, Said, Spent
from deepwork_run.agents.program import SERVER_SECONDS, ProgramAgent, Stream, count, mapping
from deepwork_run.agents.refusals import Words, refusal
from deepwork_run.settings import RunSettings

# What the account of the user brings besides.
OWN_FEATURES = ("apps", "plugins", "remote_plugin", "memories")
# Its permissions, under a name that no user has; they count whatever `sandbox_mode` of the user's own file says.
PROFILE = "deepwork-run"
CALLS = ("mcp_tool_call", "command_execution", "file_change", "web_search")

NO_SERVER = "MCP servers failed to initialize"
# Messages of 0.125 to 0.169, which have no other mark.
WORDS = Words(
    context=r"context window|context_length_exceeded",
    usage=r"hit your usage limit|usage limit has been reached|\b429\b|rate limit reached",
    login=r"\b40[13] (unauthorized|forbidden)|not logged in|log ?in again|codex login|missing environment variable|"
    r"quota exceeded|insufficient_quota|invalid_api_key",
    network=r"stream disconnected|error sending request|connection (refused|reset|failed|closed)|timed out|\bdns\b",
    overload=r"at capacity|overloaded|high demand|status:? 5\d\d|\b5\d\d (internal|bad|service|gateway)",
)


class CodexAgent(ProgramAgent):
    """Runs Codex with our server, in its sandbox, and without any configuration of the project."""

    VARIABLES = ("OPENAI_*", "CODEX_*", "AZURE_OPENAI_*")

    def __init__(self, context: PluginContext, settings: RunSettings) -> None:
        super().__init__(context, settings, settings.codex)

    def stream(self) -> Stream:
        """Read what `codex exec --json` prints."""
        return _Stream()

    def arguments(self, task: AgentTask, folder: Path) -> list[str]:
        """Return everything as options. Values of variables go into its environment: others can read the arguments."""
        server = {
            "command": task.server[0],
            "args": [*task.server[1:]],
            "env_vars": [*task.server_environment],
            "required": True,
            "startup_timeout_sec": SERVER_SECONDS,
            "tool_timeout_sec": 600,
            "default_tools_approval_mode": "approve",
        }
        options = {
            "approval_policy": "never",
            "shell_environment_policy.inherit": "core",
            "project_doc_max_bytes": 0,
            "web_search": "live" if task.allows("network") else "disabled",
            "mcp_servers.deepwork": server,
            "projects": {str(task.project_root): {"trust_level": "untrusted"}},
            # Skills of the project would be read even so.
            "skills.include_instructions": False,
            "features.hooks": False,
        }
        if "all" not in task.allow:
            options |= {"default_permissions": PROFILE, f"permissions.{PROFILE}": self._permissions(task)}
            options |= {f"features.{name}": False for name in OWN_FEATURES}
            options |= {f"mcp_servers.{name}.enabled": False for name in _own_servers(task.environment)}
        return [
            *("exec", "--json", "--ephemeral", "--skip-git-repo-check"),
            *(("--sandbox", "danger-full-access") if "all" in task.allow else ()),
            *(word for name, value in options.items() for word in ("-c", f"{name}={_toml(value)}")),
            "-",
        ]

    def _permissions(self, task: AgentTask) -> dict[str, Any]:
        """Return its sandbox.

        A shell that writes the state could complete steps, or say that a person lets a run go on.
        """
        state_dir = self._context.workspace.shown(self._context.workspace.state_dir)
        filesystem = {":workspace_roots": {state_dir: "read"}}
        return {"extends": ":workspace", "filesystem": filesystem, "network": {"enabled": task.allows("network")}}


class _Stream:
    """What one process has printed so far."""

    is_lost = False

    def __init__(self) -> None:
        self.has_ended = False
        self._thread = ""
        self._turns = 0

    def events(self, message: dict[str, Any]) -> Iterator[AgentEvent]:
        """Return what a message tells."""
        item = mapping(message.get("item"))
        match message.get("type"):
            case "thread.started":
                self._thread = str(message.get("thread_id"))
            case "item.started" if item.get("type") in CALLS:
                yield Called(str(item.get("tool") or item["type"]), str(item.get("id")))
            case "item.completed" if item.get("type") in CALLS:
                yield Called(str(item.get("tool") or item["type"]), str(item.get("id")), is_done=True)
            case "item.completed" if item.get("type") == "agent_message":
                yield Said(str(item.get("text")))
            case "turn.completed" | "turn.failed" as kind:
                self.has_ended = True
                self._turns += 1
                usage = mapping(message.get("usage"))
                if usage:
                    used = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
                    yield Spent(f"{self._thread}:{self._turns}", *used)
                if kind == "turn.failed":
                    yield refusal(str(mapping(message.get("error")).get("message")), WORDS)

    def ended(self, code: int, said: str) -> Iterator[AgentEvent]:
        """Tell of an end within a turn."""
        if not self.has_ended:
            # Of our server it says `timed out` and `connection closed` too, as of a network.
            is_refusal = code and NO_SERVER not in said
            yield refusal(said, WORDS) if is_refusal else Failed(f"Codex {said}")


def _own_servers(environment: Mapping[str, str]) -> list[str]:
    """Return the servers of the user's own configuration; Codex has no option against all of them."""
    home = environment.get("CODEX_HOME") or os.path.join(environment.get("HOME", ""), ".codex")
    with suppress(OSError, ValueError):
        servers = mapping(tomllib.loads(Path(home, "config.toml").read_text(encoding="utf-8")).get("mcp_servers"))
        return [name for name in servers if name != "deepwork" and re.fullmatch(r"[\w-]+", name)]
    return []


def _toml(value: Any) -> str:
    """Write a value as TOML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)
