"""Starts our server as a client would, and asks it for its tools."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio

from deepwork.builtin.clients import NOTHING
from deepwork.builtin.clients.places import Place
from deepwork.errors import ConfigError, ProgramError, ProgramTimeout
from deepwork.programs.processes import allowed_environment, run_program
from deepwork.text import tokens_of

# Clients wait about as long. A server may need more on a busy machine, so this shows no fault of its entry.
SECONDS = 30.0
LATE = f"the server has not answered within {SECONDS:.0f} s, perhaps because this machine is busy"
# The newest revision that has `initialize`.
PROTOCOL = "2025-06-18"

# Files of variables, in forms of their own.
_READ_BY_CLIENT = ("envFile", "env_file")

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
    # As hooks of a client do; this event is none of a client, so it is answered with nothing.
    {"id": 3, "method": "tools/call", "params": {"name": "hook", "arguments": {"event": "Doctor", "session": "-"}}},
)


@dataclass(frozen=True)
class Verified:
    """The tools that a server has answered with.

    Attributes:
        tokens: About what they cost an agent with every request.
        seconds: How long that took from its start.
        answers_hooks: Whether it answers the hooks of clients.
        without: What of the entry the server was started without, as a note; empty if nothing.
    """

    tools: list[str]
    tokens: int
    seconds: float
    answers_hooks: bool
    without: str = ""


def verify(place: Place, entry: Mapping[str, Any]) -> Verified | None:
    """Start a server precisely as an entry says, where the client starts it, and list its tools.

    None if it has not answered within `SECONDS`: then it is not known whether it works.

    Desktop programs are not started by a shell, so beside the variables of the entry the server gets the PATH of the
    system only.

    Raises:
        ConfigError: It does not start.
    """
    words = [place.with_folder(word) for word in place.client.command_of(entry) or []]
    folder = place.root if place.scope == "project" else Path.home()
    cwd = folder / place.with_folder(str(entry.get("cwd", "")))
    environment = {**allowed_environment(place.environment), "PATH": os.defpath, **_variables(place, entry)}
    verified = anyio.run(_listed, words, cwd, place.root, environment)
    if verified is None:
        return None
    without = ", ".join(key for key in _READ_BY_CLIENT if key in entry)
    return replace(verified, without=f" (without {without}, which only the client reads)" if without else "")


def _variables(place: Place, entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that an entry sets, and those of ours that it passes on."""
    variables = {}
    names = entry.get("env_vars")
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and name in place.environment:
            variables[name] = place.environment[name]
    for key in ("env", "environment"):
        if isinstance(members := entry.get(key), dict):
            variables |= {name: place.with_folder(str(value)) for name, value in members.items()}
    return variables


async def _listed(words: list[str], cwd: Path, project: Path, environment: Mapping[str, str]) -> Verified | None:
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in _MESSAGES).encode()
    started = time.monotonic()
    try:
        completed = await run_program(
            words, cwd=cwd, environment=environment, seconds=SECONDS, stdin=stdin, answered=_answered, project=project
        )
    except ProgramTimeout:
        return None
    except ProgramError as error:
        raise ConfigError(error.message, hint="`deepwork doctor` looks for the cause.") from None
    seconds, results = time.monotonic() - started, _results(completed.stdout)
    try:
        costs = {
            tool["name"]: tokens_of(tool["name"], tool.get("description"), tool["inputSchema"])
            for tool in results[2]["tools"]
        }
    except (LookupError, TypeError, AttributeError):
        log = completed.stderr.decode(errors="replace").strip().splitlines()[-5:]
        raise ConfigError(
            "\n".join([f"{' '.join(words)} {completed.ending} and listed no tools", *log]),
            hint="`deepwork doctor` looks for the cause.",
        ) from None
    answers_hooks = False
    with suppress(LookupError, TypeError):
        answers_hooks = results[3]["content"][0]["text"] == NOTHING
    return Verified([*costs], sum(costs.values()), seconds, answers_hooks)


def _answered(stdout: bytes) -> bool:
    """True if every question has an answer. A server ends soon after its stdin is closed, also if it is late."""
    return _results(stdout).keys() >= {message["id"] for message in _MESSAGES if "id" in message}


def _results(stdout: bytes) -> dict[Any, Any]:
    """Return what a server has answered with, by the ids of the requests; None for an error."""
    results = {}
    for line in stdout.splitlines():
        with suppress(ValueError, LookupError, TypeError, AttributeError):
            message = json.loads(line)
            results[message["id"]] = message.get("result")
    return results
