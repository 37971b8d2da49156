"""Our own command, and programs of clients: always by their full path."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from deepwork.api import allowed_environment, run_program
from deepwork.builtin.clients.table import NAME, Client
from deepwork.errors import ConfigError, DeepWorkError, ProgramMissing
from deepwork.programs.installation import Installation, installation
from deepwork.programs.programs import find_program

VERSION_SECONDS = 20.0
MISSING = "Install deepwork again: its environment is not whole."


def installed_command(environment: Mapping[str, str], *, transient: bool = False) -> tuple[str, ...]:
    """Return the words that start this deepwork: the full path of its script.

    Args:
        environment: Where the folders of installers are looked up.
        transient: Start it by `uvx` instead, with the plugins that are installed now.

    Raises:
        ConfigError: The environment is a passing one, or has no such script; with `transient`, `uvx` is missing or
            nobody knows from where this deepwork came.
    """
    own = installation(environment)
    if transient:
        return _transient_command(own, environment)
    if own.is_passing:
        raise ConfigError(
            f"this deepwork runs from {Path(sys.prefix).resolve()}, which is deleted some day", hint=keep_it(own)
        )
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    for folder in folders:
        script = Path(folder) / NAME
        if os.access(script, os.X_OK):
            return (str(script),)
    raise ConfigError(f"there is no script {NAME!r} in {folders[0]}", hint=MISSING)


def keep_it(own: Installation) -> str:
    """Return what a user of a passing environment can do."""
    command = own.keeping_command
    keep = f"Install it to stay: {shlex.join(command)}" if command else "Install it to stay, from where you have it"
    return f"{keep}; or use --transient, and clients start it by uvx each time."


def first_installed(names: Sequence[str], environment: Mapping[str, str], project: Path) -> str | None:
    """Return the path of the first of these programs in PATH; None if it has none of them."""
    for name in names:
        with suppress(ProgramMissing):
            return find_program(name, environment, project)
    return None


def _transient_command(own: Installation, environment: Mapping[str, str]) -> tuple[str, ...]:
    uvx = shutil.which("uvx", path=environment.get("PATH"))
    if uvx is None:
        raise ConfigError("there is no `uvx` in PATH, which would start deepwork", hint="Install uv.")
    if own.requirement is None:
        raise ConfigError("nobody knows from where this deepwork was installed", hint="Leave out --transient.")
    return (os.path.abspath(uvx), "--from", own.requirement, NAME)


def hook_server(client: Client, environment: Mapping[str, str], project: Path, server: str = NAME) -> str | None:
    """Return the server that the hooks of a client are to call; None if the client in PATH cannot call tools."""
    version = client_version(client, environment, project) if client.hooks and client.hooks.tools_since else None
    return server if version and client.hooks and version >= (client.hooks.tools_since or ()) else None


def client_version(client: Client, environment: Mapping[str, str], project: Path) -> tuple[int, ...] | None:
    """Return the version of the program of a client in PATH; None if there is none, or it does not say."""
    program = first_installed(client.programs, environment, project)
    if program is None:
        return None
    arguments = [program, "--version"]

    async def ask() -> str:
        with TemporaryDirectory() as home:  # Codex makes its folder there even for this
            seen = {**allowed_environment(environment), "HOME": home}
            completed = await run_program(
                arguments, cwd=Path(home), environment=seen, seconds=VERSION_SECONDS, project=project
            )
        return completed.stdout.decode(errors="replace")

    with suppress(DeepWorkError, OSError):
        match = re.search(r"(\d+)\.(\d+)\.(\d+)", anyio.run(ask))
        return tuple(map(int, match.groups())) if match else None
    return None
