"""The lines that connect an agent to this installation."""

from __future__ import annotations

import json
import os
import shutil
import sys

_ENTRY = """\
{
  "mcpServers": {
    "deepwork": {
      "command": COMMAND,
      "args": ["serve", "--path", "."]
    }
  }
}"""


def mcp_json() -> str:
    """Return the content of `.mcp.json`: with the bare command if it is on PATH, else with its full path."""
    command = "deepwork"
    if shutil.which(command) is None:
        command = os.path.join(os.path.dirname(sys.executable), "deepwork")
    return _ENTRY.replace("COMMAND", json.dumps(command))
