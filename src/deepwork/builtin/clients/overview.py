"""Which clients are on this machine, and which of them are connected."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from deepwork.builtin.clients.entries import added_keys
from deepwork.builtin.clients.installed import first_installed
from deepwork.builtin.clients.places import Place, Scope
from deepwork.builtin.clients.table import CLIENTS, Client
from deepwork.errors import ConfigError


@dataclass(frozen=True)
class ClientState:
    """What is known of one client in one project.

    Attributes:
        entry: What stands under our name, if that starts a program.
        place: Where the entry is, if there is one, or where it cannot be read.
    """

    client: Client
    word: Literal["connected", "broken", "found", "-"]
    detail: str = ""
    entry: Mapping[str, Any] | None = None
    place: Place | None = None


def overview(root: Path, environment: Mapping[str, str]) -> Iterator[ClientState]:
    """Look at every client, without starting anything."""
    for client in CLIENTS.values():
        yield _state(client, root, environment)


def _state(client: Client, root: Path, environment: Mapping[str, str]) -> ClientState:
    scopes: list[Scope] = ["project", "user"] if client.project_files else ["user"]
    for scope in scopes:
        place = Place(client, root, scope, environment)
        try:
            entry = place.entry()
        except ConfigError as error:
            return ClientState(client, "broken", error.message, place=place)
        if entry is not None:
            return _of_entry(place, entry)
    program = first_installed(client.programs, environment, root)
    if program:
        return ClientState(client, "found", program)
    folder = client.user_files(environment)[0].parent
    if folder != Path.home() and folder.is_dir():
        return ClientState(client, "found", str(folder))
    return ClientState(client, "-")


def _of_entry(place: Place, entry: Any) -> ClientState:
    name, command = place.shown(place.file), place.client.command_of(entry)
    if command is None:
        return ClientState(place.client, "connected", f"{name}: over HTTP", place=place)
    program = command[0]
    is_there = (
        _runs(place.root / program) if os.sep in program else first_installed([program], place.environment, place.root)
    )
    if not is_there:
        return ClientState(place.client, "broken", f"{name}: there is no such program: {program}", place=place)
    added = added_keys(place.client, entry)
    detail = f"{name}: {' '.join(command)}" + (f" (with {', '.join(added)})" if added else "")
    return ClientState(place.client, "connected", detail, entry, place)


def _runs(program: Path) -> bool:
    return program.is_file() and os.access(program, os.X_OK)
