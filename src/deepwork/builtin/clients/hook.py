"""`deepwork hook`: answers the hooks of clients that run commands. It never fails, and never takes long."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from deepwork.api import project_at
from deepwork.builtin.clients.deliveries import Deliveries
from deepwork.builtin.clients.desk import Desk
from deepwork.builtin.clients.hook_events import answer, event_of
from deepwork.builtin.clients.listeners import ClientSession, key_of

SECONDS = 2.0
MAX_INPUT = 16 * 1024 * 1024

PROJECT_VARIABLES = {"claude": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}

ResultT = TypeVar("ResultT")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog="Clients call it; `deepwork connect` writes that into their files.",
)
@click.argument("event")
@click.option("--client", default="claude", show_default=True, metavar="NAME", help="The client that calls.")
@click.option("--path", "root", metavar="PATH", help="Project root directory (default: what the client says).")
def hook(event: str, client: str, root: str | None) -> None:
    """Answer a hook of a client: note its sessions and its agent, remind of an open step, hand over what waits.

    EVENT is the client's own word, such as Stop, SessionStart, PreCompact or PostToolUse. The event's JSON is read
    from stdin, and the answer has the client's form. Where there is nothing to say, or after two seconds, nothing is
    printed; the exit code is always 0.
    """
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _seconds())
    with suppress(Exception):  # the client's work goes on after any error
        _handle(event, client, root)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _handle(name: str, client: str, root: str | None) -> None:
    """Print the answer; what it hands over counts as arrived only once it is printed."""
    data = json.loads(b"{}" if sys.stdin.isatty() else sys.stdin.buffer.read(MAX_INPUT))
    folder = _folder(root, client, data)
    event = event_of(name, client, data)
    session = ClientSession(key_of(event.client, event.session))
    to = Deliveries(Desk(project_at(folder), str(folder)), session, event.agent)
    if text := _ended(answer(event, to)):
        click.echo(text)
    if to.handed_over:
        _ended(to.printed())


def _ended(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run what never waits, as with `Desk`, and return its result."""
    try:
        work.send(None)
    except StopIteration as end:
        result: ResultT = end.value
        return result
    raise RuntimeError("a hook waits")


def _folder(root: str | None, client: str, data: Mapping[str, Any]) -> Path:
    """Return the project of the option, else of the client's variable, else of the event's folder."""
    variable = os.environ.get(PROJECT_VARIABLES.get(client, ""))
    return Path(os.path.realpath(root or variable or data.get("cwd") or "."))


def _seconds() -> float:
    try:
        return max(float(os.environ.get("DEEPWORK_HOOK_SECONDS") or SECONDS), 0.1)
    except ValueError:
        return SECONDS


def _give_up(*_: object) -> None:
    os._exit(0)
