"""Starts our server as a client would, and asks it for its tools."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from deepwork.clients.connection import Place
from deepwork.clients.table import WORKSPACE_FOLDER
from deepwork.errors import ConfigError, ProgramError
from deepwork.files.processes import Completed, allowed_environment, run_program

SECONDS = 30.0
# The newest revision that has `initialize`.
PROTOCOL = "2025-06-18"

_MESSAGES = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "deepwork-connect", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


@dataclass(frozen=True)
class Verified:
    """The tools that a server has answered with, and how long that took from its start."""

    tools: list[str]
    seconds: float


def verify(place: Place, command: list[str]) -> Verified:
    """Start a server with the command of an entry, where the client starts it, and list its tools.

    Desktop programs are not started by a shell, so the server gets the PATH of the system only.

    Raises:
        ConfigError: It does not start, or does not answer in time.
    """
    words = [word.replace(WORKSPACE_FOLDER, str(place.root)) for word in command]
    cwd = place.root if place.scope == "project" else Path.home()
    environment = {**allowed_environment(place.environment), "PATH": os.defpath}
    return anyio.run(_listed, words, cwd, environment)


async def _listed(words: list[str], cwd: Path, environment: Mapping[str, str]) -> Verified:
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in _MESSAGES).encode()
    started = time.monotonic()
    try:
        completed = await run_program(words, cwd=cwd, environment=environment, seconds=SECONDS, stdin=stdin)
    except ProgramError as error:
        raise ConfigError(error.message, hint="`deepwork doctor` looks for the cause.") from None
    return Verified(_tools(completed, words), time.monotonic() - started)


def _tools(completed: Completed, words: list[str]) -> list[str]:
    for line in completed.stdout.splitlines():
        try:
            message = json.loads(line)
            if message.get("id") == 2:
                return [tool["name"] for tool in message["result"]["tools"]]
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    log = completed.stderr.decode(errors="replace").strip().splitlines()[-5:]
    raise ConfigError(
        "\n".join([f"{' '.join(words)} {completed.ending} and listed no tools", *log]),
        hint="`deepwork doctor` looks for the cause.",
    )
