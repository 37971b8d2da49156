"""Writes what Claude Code and Codex read of this repository when they take it as a marketplace: `make reference`.

The plugin in `marketplace/deepwork` brings the server, the hooks and the skill. Its own programs, `bin/deepwork` and
`bin/make-environment`, and the links to the sources are not written by it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from deepwork import __version__
from deepwork.builtin.clients.claude_plugin import AUTHOR, DESCRIPTION, LAUNCHER, plugin_files
from deepwork.builtin.clients.hook_entries import hooks_of
from deepwork.builtin.clients.table import CLIENTS, NAME

ROOT = Path(__file__).parent.parent
PLUGIN = f"marketplace/{NAME}"
# Both clients know the variable in it, Codex in hooks alone; there a shell puts in its value.
QUOTED = (f"'{LAUNCHER}'", '\\"${CLAUDE_PLUGIN_ROOT}\\"/bin/deepwork')
SECONDS = 300  # for the first start, which makes the environment

README = """\
# DeepWork

An MCP server that leads the agent through work of several steps: one step at a time, each held until its files are
there and reviewed. This plugin for Claude Code and Codex brings the server, hooks that remind the agent of an open
step, and a skill.

The first start makes an environment with deepwork in it, which takes from some seconds to a minute: by
[uv](https://docs.astral.sh/uv/) if it is there, otherwise by Python 3.11 or newer. It lies in the client's folder for
the data of plugins. Then ask the agent: *"Start the project_tour job with deepwork."*

The files here are written by `make reference`, the two programs in `bin` excepted.
"""


def files() -> dict[str, str]:
    """Return the texts, by their paths in the repository."""
    ours = plugin_files([LAUNCHER])
    claude = {f"marketplace/{name}": text for name, text in ours.items() if name.startswith(f"{NAME}/")}
    marketplace = json.loads(ours[".claude-plugin/marketplace.json"])
    marketplace["plugins"][0]["source"] = f"./{PLUGIN}"
    texts = {
        **claude,
        ".claude-plugin/marketplace.json": _json(marketplace),
        ".agents/plugins/marketplace.json": _json(_codex_marketplace()),
        f"{PLUGIN}/.codex-plugin/plugin.json": _json(_codex_plugin()),
        f"{PLUGIN}/codex.mcp.json": _json({"mcpServers": {NAME: _codex_server()}}),
        f"{PLUGIN}/hooks/codex.json": _json({"hooks": hooks_of(CLIENTS["codex"], [LAUNCHER], None, NAME)}),
        f"{PLUGIN}/README.md": README,
        f"{PLUGIN}/LICENSE": (ROOT / "LICENSE").read_text(encoding="utf-8"),
    }
    return {name: text.replace(*QUOTED) for name, text in texts.items()}


def _codex_marketplace() -> dict[str, Any]:
    source = {"source": "local", "path": f"./{PLUGIN}"}
    policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
    plugin = {"name": NAME, "source": source, "policy": policy, "category": "Productivity"}
    return {"name": NAME, "interface": {"displayName": "DeepWork"}, "plugins": [plugin]}


def _codex_plugin() -> dict[str, Any]:
    return {
        "name": NAME,
        "version": __version__,
        "description": DESCRIPTION,
        "author": AUTHOR,
        "license": "MIT",
        "skills": "./skills/",
        "mcpServers": "./codex.mcp.json",
        "hooks": "./hooks/codex.json",
        "interface": {"displayName": "DeepWork", "shortDescription": DESCRIPTION, "category": "Productivity"},
    }


def _codex_server() -> dict[str, Any]:
    """Return the entry for Codex: it starts a server in the project, and does not say where the plugin is."""
    launcher = f'"${{CODEX_HOME:-$HOME/.codex}}/plugins/cache/{NAME}/{NAME}/{__version__}/bin/deepwork"'
    return {
        "command": "sh",
        "args": ["-c", f"exec {launcher} serve --path ."],
        "env_vars": ["CODEX_HOME"],
        "startup_timeout_sec": SECONDS,
    }


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write them."""
    for name, text in files().items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
