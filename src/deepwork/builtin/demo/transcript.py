"""Who says what, as people read it."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from deepwork.commands.terminal import Styled, say

WIDTH = 106
LINES = 9
_ID = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24}\b")


def act(title: str) -> None:
    """Print what comes now."""
    say("")
    say(Styled(title, bold=True))


def agent(text: str) -> None:
    """Print what the agent does."""
    _say("agent", "cyan", text)


def server(text: str, colour: str = "green") -> None:
    """Print what comes from the server."""
    _say("server", colour, text)


def call(tool: str, arguments: Mapping[str, Any]) -> None:
    """Print what the agent calls; ids and empty arguments are left out."""
    shown = [f"{name}={json.dumps(value)}" for name, value in arguments.items() if name != "session_id"]
    agent(f"{tool}({', '.join(shown)})")


def reply(data: Mapping[str, Any]) -> None:
    """Print what of a reply matters."""
    status = data.get("status", "started")
    if status == "needs_work":
        server(f"needs_work: {_shortened(data['feedback'])}", "yellow")
    elif status == "workflow_complete":
        server(f"workflow_complete: {json.dumps(data['all_outputs'])}")
    else:
        step = data["begin_step"]
        outputs = ", ".join(output["name"] for output in step["step_expected_outputs"])
        server(f"{status}: step {step['step_id']!r}. Outputs: {outputs}")


def refusal(text: str) -> None:
    """Print what the server has refused."""
    server(_shortened(text), "red")


def _shortened(text: str) -> str:
    """Return the beginning of a long answer, with short ids."""
    lines = [line for line in _ID.sub(r"\1…", text).splitlines() if line]
    return "\n".join([*lines[:LINES], f"… {len(lines) - LINES} more lines"] if len(lines) > LINES else lines)


def _say(who: str, colour: str, text: str) -> None:
    lines = [part for line in text.splitlines() for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ")]
    for number, line in enumerate(lines):
        say("  ", Styled(f"{who if number == 0 else '':7}", colour), " ", line)
