"""The step of `deepwork init` that connects clients."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from deepwork.builtin.clients.connect import ConnectOptions, connect_client, place_of
from deepwork.builtin.clients.keeping import keep_or_tell
from deepwork.builtin.clients.overview import overview
from deepwork.builtin.clients.table import CLIENTS, Client
from deepwork.commands.terminal import say_error, say_text
from deepwork.errors import ConfigError, DeepWorkError
from deepwork.ports.records import InitialProject, InitStep
from deepwork.text import nearest, visible

NONE = "none"

OPTIONS = (
    click.Option(
        ["--client", "client_name"],
        metavar="NAME",
        help="Connect this client, as `deepwork connect NAME` does (default: asks which of those that are here).",
    ),
    click.Option(["--no-hooks"], is_flag=True, help="Connect without the hooks that remind the agent."),
    click.Option(
        ["--transient"],
        is_flag=True,
        help="Have the client start deepwork by uvx each time, with the plugins that are installed now.",
    ),
)


def step() -> InitStep:
    """Return the step."""
    return InitStep(name="clients", open=_open, options=OPTIONS, tells_next=True)


def _open(values: Mapping[str, Any]) -> Callable[[InitialProject], int]:
    client = _client(values["client_name"]) if values["client_name"] else None
    transient = values["transient"]
    if not transient:
        keep_or_tell(is_needed=client is not None)
    options = ConnectOptions(hooks=False if values["no_hooks"] else None, transient=transient)

    def run(project: InitialProject) -> int:
        if client is None:
            return _connect_those_here(project.root, project.prompt, options)
        connect_client(place_of(client, project.root), options)
        say_text(f"\nNext: ask your agent: {project.prompt}")
        return 0

    return run


def _connect_those_here(root: Path, prompt: str, options: ConnectOptions) -> int:
    """Connect the clients of this machine that the user chooses; without a terminal none."""
    states = [*overview(root, os.environ)]
    found = {state.client.name: state.client for state in states if state.word == "found"}
    chosen = _chosen(found) if found and sys.stdin.isatty() else []
    failed = False
    for client in chosen:
        try:
            connect_client(place_of(client, root), options)
        except DeepWorkError as error:
            say_error(error)
            failed = True
    if chosen or any(state.word == "connected" for state in states):
        say_text(f"\nNext: ask your agent: {prompt}")
    elif found:
        lines = "\n".join(f"  deepwork connect {name}" for name in found)
        say_text(f"\nNext: connect your agent:\n{lines}\nThen ask it: {prompt}")
    else:
        say_text(
            "\nNext: connect your agent, for example with `deepwork connect claude`; `deepwork connect` lists the "
            f"clients.\nThen ask it: {prompt}"
        )
    return int(failed)


def _chosen(found: Mapping[str, Client]) -> list[Client]:
    """Ask which of these clients are connected; all of them, if the answer is empty."""
    titles = ", ".join(f"{name} ({client.title})" for name, client in found.items())
    say_text(f"\nHere are: {titles}", err=True)

    def clients(answer: str) -> list[Client]:
        names = [name.strip() for name in answer.split(",") if name.strip()]
        unknown = next((name for name in names if name not in found), None)
        if unknown is not None and names != [NONE]:
            raise click.BadParameter(f"{visible(unknown)} is not one of {', '.join(found)}")
        return [found[name] for name in found if name in names]

    chosen: list[Client] = click.prompt(
        f"Connect which? Names with commas between, or {NONE}", default=",".join(found), value_proc=clients, err=True
    )
    return chosen


def _client(name: str) -> Client:
    if name not in CLIENTS:
        raise ConfigError(f"no client {name!r}{nearest(name, [*CLIENTS])}")
    return CLIENTS[name]
