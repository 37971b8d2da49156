"""The clients that `deepwork connect` knows: where their files are, and how they write an entry and hooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepwork.builtin.clients.files import Syntax
from deepwork.builtin.clients.json_text import LENIENT, STRICT, WITH_COMMENTS, JsonSyntax
from deepwork.builtin.clients.toml_text import TomlSyntax
from deepwork.paths.user_folders import user_config_dir

NAME = "deepwork"
HERE = "."
WORKSPACE_FOLDER = "${workspaceFolder}"

Environment = Mapping[str, str]


def _stdio(command: list[str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(command)}


def _plain(command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:]}


def _one_list(command: list[str]) -> dict[str, Any]:
    return {"type": "local", "command": command}


@dataclass(frozen=True)
class HookFiles:
    """Where a client has its hooks, and its words for the events.

    Attributes:
        user_file: The file for all projects of the user, as in `user_path`.
        events: The events at which it runs a command of ours, or calls our tool, with what it hands over to the tool
            besides `who`; None if a tool cannot be called at this event.
        timeout: What the client is told, in its own unit.
        who: What each event hands over to the tool, of `HOOK_FIELDS`: which agent of which session it is about.
        tools_since: The first version whose hooks can call a tool; None if they cannot.
    """

    project_file: str
    user_file: str
    events: Mapping[str, tuple[str, ...] | None]
    timeout: int
    who: tuple[str, ...] = ()
    tools_since: tuple[int, int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client.

    Attributes:
        project_files: Where its file is in a project; the first is made where none exists.
        user_paths: The same for all projects of the user, as in `user_path`.
        keys: The keys under which servers stand.
        entry: Writes a command in its form.
        extras: What a new entry has besides; a user may change it later.
        folder: What its file says for the project's folder; None if that must be the full path.
        programs: Its command, whose presence shows that it is installed.
        note: What a user has to know after connecting.
        project_note: The same, for an entry in a project's file.
        hooks_note: The same, for hooks.
    """

    name: str
    title: str
    syntax: Syntax
    keys: tuple[str, ...] = ("mcpServers",)
    entry: Callable[[list[str]], dict[str, Any]] = _plain
    extras: Mapping[str, Any] = field(default_factory=dict)
    project_files: tuple[str, ...] = ()
    user_paths: tuple[str, ...]
    folder: str | None = None
    programs: tuple[str, ...] = ()
    hooks: HookFiles | None = None
    note: str = ""
    project_note: str = ""
    hooks_note: str = ""

    @property
    def keys_of_entry(self) -> tuple[str, ...]:
        """Where our entry stands."""
        return (*self.keys, NAME)

    def user_files(self, environment: Environment) -> list[Path]:
        """Return its files for all projects of the user."""
        return [user_path(path, environment) for path in self.user_paths]

    def command_of(self, entry: Any) -> list[str] | None:
        """Read the command of an entry; None if it starts no program."""
        if not isinstance(entry, dict):
            return None
        command, args = entry.get("command"), entry.get("args", [])
        parts = command if isinstance(command, list) else [command, *(args if isinstance(args, list) else [])]
        return parts if parts and all(isinstance(part, str) for part in parts) else None


def user_path(path: str, environment: Environment) -> Path:
    """Return a path in folders of the user, which stand in braces: the environment may have moved them."""
    home, config = os.path.expanduser("~"), user_config_dir(environment)
    claude = environment.get("CLAUDE_CONFIG_DIR")
    folders = {
        "home": home,
        "config": config,
        "applications": f"{home}/Library/Application Support" if sys.platform == "darwin" else config,
        "claude": claude or f"{home}/.claude",
        "claude_home": claude or home,
        "codex": environment.get("CODEX_HOME") or f"{home}/.codex",
    }
    return Path(path.format(**folders))


# The arguments of our tool, with what a client puts in their place. Codex calls nothing where one of them is missing.
# As `agent_id` of its main agent is, the name of the transcript tells its agents apart.
HOOK_FIELDS: Mapping[str, Any] = {
    "session": "${session_id}",
    "agent": "${agent_id}",
    "tool": "${tool_name}",
    "call": "${tool_use_id}",
    "paths": ["${tool_input.file_path}", "${tool_input.notebook_path}"],
    "arguments": "${tool_input}",
    "response": "${tool_response}",
    "stop_hook_active": "${stop_hook_active}",
    "trigger": "${trigger}",
    "error": "${error}",
    "transcript": "${transcript_path}",
}
_CLAUDE_EVENTS = {
    "SessionStart": None,  # Claude Code has started no server yet
    "UserPromptSubmit": (),
    "PreCompact": ("trigger",),
    "PostToolUse": ("tool", "call", "paths", "arguments", "response"),
    "PostToolUseFailure": ("tool", "call", "arguments", "error"),
    "Stop": ("stop_hook_active",),
    "StopFailure": ("error",),
    "SessionEnd": None,  # its servers are ended before
}
_CODEX_EVENTS = {
    "SessionStart": (),
    "UserPromptSubmit": (),
    "PreCompact": ("trigger",),
    "PostToolUse": ("tool", "call", "arguments", "response"),
    "Stop": ("stop_hook_active",),
}
_GEMINI_EVENTS = dict.fromkeys(("SessionStart", "PreCompress", "AfterTool", "AfterAgent"))
HOOK_SYNTAX: JsonSyntax = WITH_COMMENTS

CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude",
            title="Claude Code",
            syntax=STRICT,
            entry=_stdio,
            project_files=(".mcp.json",),
            user_paths=("{claude_home}/.claude.json",),
            folder=HERE,
            programs=("claude",),
            hooks=HookFiles(
                ".claude/settings.local.json",
                "{claude}/settings.json",
                _CLAUDE_EVENTS,
                timeout=10,
                who=("session", "agent"),
                tools_since=(2, 1, 118),
            ),
            project_note="Run `claude` in the project once: it asks for your approval of the server.",
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            syntax=STRICT,
            user_paths=("{applications}/Claude/claude_desktop_config.json",),
            note="Quit Claude Desktop and start it again.",
        ),
        Client(
            name="cursor",
            title="Cursor",
            syntax=LENIENT,
            entry=_stdio,
            project_files=(".cursor/mcp.json",),
            user_paths=("{home}/.cursor/mcp.json",),
            folder=WORKSPACE_FOLDER,
            programs=("cursor", "cursor-agent"),
        ),
        Client(
            name="vscode",
            title="VS Code",
            syntax=LENIENT,
            keys=("servers",),
            entry=_stdio,
            project_files=(".vscode/mcp.json",),
            user_paths=("{applications}/Code/User/mcp.json",),
            folder=WORKSPACE_FOLDER,
            programs=("code",),
        ),
        Client(
            name="codex",
            title="Codex",
            syntax=TomlSyntax(),
            keys=("mcp_servers",),
            extras={"startup_timeout_sec": 30, "tool_timeout_sec": 600},
            project_files=(".codex/config.toml",),
            user_paths=("{codex}/config.toml",),
            folder=HERE,
            programs=("codex",),
            hooks=HookFiles(
                ".codex/hooks.json",
                "{codex}/hooks.json",
                _CODEX_EVENTS,
                timeout=10,
                who=("session", "transcript"),
                tools_since=(0, 169, 0),
            ),
            project_note=(
                "Codex reads a project's file only after you have trusted the project: run `codex` there once."
            ),
            hooks_note="Codex runs hooks only after you have looked at them: it asks when `codex` starts.",
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            syntax=WITH_COMMENTS,
            project_files=(".gemini/settings.json",),
            user_paths=("{home}/.gemini/settings.json",),
            folder=HERE,
            programs=("gemini",),
            hooks=HookFiles(".gemini/settings.json", "{home}/.gemini/settings.json", _GEMINI_EVENTS, 10_000),
            note="Gemini CLI starts no server in a folder that you have not trusted: run `gemini` there once.",
        ),
        Client(
            name="opencode",
            title="opencode",
            syntax=LENIENT,
            keys=("mcp",),
            entry=_one_list,
            project_files=("opencode.json", "opencode.jsonc"),
            user_paths=("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
            folder=HERE,
            programs=("opencode",),
        ),
        Client(
            name="zed",
            title="Zed",
            syntax=LENIENT,
            keys=("context_servers",),
            project_files=(".zed/settings.json",),
            user_paths=("{config}/zed/settings.json",),
            programs=("zed", "zeditor"),
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            syntax=LENIENT,
            user_paths=("{home}/.codeium/windsurf/mcp_config.json",),
            programs=("windsurf",),
        ),
    )
}
