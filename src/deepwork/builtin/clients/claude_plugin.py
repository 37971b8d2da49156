"""A plugin of Claude Code that does what `connect` does without a change of the project's files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deepwork import __version__
from deepwork.builtin.clients.hook_entries import PLUGIN_SERVER, hooks_of
from deepwork.builtin.clients.table import CLIENTS, HERE, NAME, user_path
from deepwork.errors import ConfigError

DESCRIPTION = "Leads the agent through multi-step work: one step at a time, checked, reviewed and remembered."
AUTHOR = {"name": "DeepWork"}
# How the plugin of the repository starts the deepwork that it has brought.
LAUNCHER = "${CLAUDE_PLUGIN_ROOT}/bin/deepwork"

SKILL = """\
---
name: deepwork
description: Use when the user asks to start, run, continue or resume a DeepWork job or workflow, or asks what is open.
---

# Workflows of DeepWork

The tools of the MCP server `deepwork` lead you through workflows of several steps.

1. `get_workflows` lists the jobs with their workflows, and the sessions that are open.
2. `start_workflow` begins one, with the user's goal. It answers with `begin_step`: a `session_id`, the instructions of
   the first step, and the outputs that it has to make.
3. Do what the instructions say, write the files, then call `finished_step` with `session_id`, `step_id` and `outputs`.
4. `needs_work`: do what the feedback says, and call it again. `next_step`: go on with its `begin_step`.
   `workflow_complete`: tell the user what was made.

Never claim a step done in any other way. If you have lost track, `finished_step` with `step_id` "?" and `outputs` {}
tells where you are. `abort_workflow` ends a workflow that cannot be completed.
"""

README = """\
# DeepWork for Claude Code

Starts the MCP server of DeepWork, which leads the agent through workflows of several steps, and adds hooks that remind
it of a step that is open and tell it what is open after a compaction. It was written by
`deepwork connect claude --plugin` and uses the command of that installation, by its full path: write it again after you
have moved the installation.

Install it with `claude plugin marketplace add FOLDER` and `claude plugin install deepwork@deepwork`, where FOLDER is
the folder above this one.
"""


def plugin_files(command: Sequence[str], hook_server: str | None = PLUGIN_SERVER) -> dict[str, str]:
    """Return the files of the plugin, and of a marketplace with it alone, by path.

    Args:
        command: The words that start this deepwork.
        hook_server: The server whose tool the hooks call; None if they run the command.
    """
    claude = CLIENTS["claude"]
    server = claude.entry([*command, "serve", "--path", HERE])
    about = {"name": NAME, "description": DESCRIPTION, "version": __version__}
    marketplace = {
        "name": NAME,
        "description": DESCRIPTION,
        "owner": AUTHOR,
        "plugins": [{**about, "source": f"./{NAME}"}],
    }
    files: dict[str, Any] = {
        ".claude-plugin/marketplace.json": marketplace,
        f"{NAME}/.claude-plugin/plugin.json": {**about, "author": AUTHOR, "license": "MIT"},
        f"{NAME}/.mcp.json": {"mcpServers": {NAME: server}},
        f"{NAME}/hooks/hooks.json": {"hooks": hooks_of(claude, command, None, hook_server)},
    }
    texts = {name: json.dumps(data, indent=2, ensure_ascii=False) + "\n" for name, data in files.items()}
    return {**texts, f"{NAME}/README.md": README, f"{NAME}/skills/{NAME}/SKILL.md": SKILL}


def write_plugin(folder: Path, command: Sequence[str], hook_server: str | None = PLUGIN_SERVER) -> None:
    """Write the plugin into a new folder, or over an earlier version of it.

    Raises:
        ConfigError: There is something else in the folder.
    """
    files = plugin_files(command, hook_server)
    others = [path for path in folder.rglob("*") if path.is_file() and str(path.relative_to(folder)) not in files]
    if others or folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"{folder} is not an empty folder", hint="Name a new one.")
    try:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from None


def installed_entries(environment: Mapping[str, str]) -> dict[Path, Any]:
    """Return the plugin's entries where Claude Code has installed it, by file."""
    entries = {}
    for file in sorted(user_path("{claude}", environment).glob(f"plugins/cache/*/{NAME}/*/.mcp.json")):
        try:
            entries[file] = json.loads(file.read_text(encoding="utf-8"))["mcpServers"][NAME]
        except (OSError, ValueError, KeyError, TypeError):
            entries[file] = None
    return entries
