"""The offer to install to stay, for a deepwork that runs from a cache: `uvx --from … deepwork init`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click

from deepwork.builtin.clients.installed import first_installed, keep_it
from deepwork.builtin.clients.table import NAME
from deepwork.commands.terminal import say
from deepwork.errors import ConfigError
from deepwork.programs.installation import installation


def keep_or_tell(*, is_needed: bool) -> None:
    """Offer to install a passing deepwork to stay, and go on as the installed one; without a terminal say how.

    Args:
        is_needed: Whether a client is to be connected, which needs a deepwork that stays.

    Raises:
        ConfigError: It is needed, and nobody can be asked; or it cannot be installed.
    """
    own = installation(os.environ)
    if not own.is_passing:
        return
    command = own.keeping_command
    installer = first_installed(command[:1], os.environ, Path.cwd()) if command else None
    if command and installer and sys.stdin.isatty():
        say(f"This deepwork runs by {own.route}, from a folder that is deleted some day.", err=True)
        if click.confirm(f"Install it to stay, by `{shlex.join(command)}`?", default=True, err=True):
            _install([installer, *command[1:]])
    elif is_needed:
        raise ConfigError(
            f"this deepwork runs by {own.route}, from a folder that is deleted some day", hint=keep_it(own)
        )
    else:
        say(keep_it(own), err=True)


def _install(command: list[str]) -> None:
    """Install it, and become the installed one, with the arguments of this command.

    Raises:
        ConfigError: It cannot be installed.
    """
    if subprocess.run(command, stdout=2, check=False).returncode:
        raise ConfigError(f"`{shlex.join(command)}` failed")
    where = ["tool", "dir", "--bin"] if command[1] == "tool" else ["environment", "--value", "PIPX_BIN_DIR"]
    told = subprocess.run([command[0], *where], stdout=subprocess.PIPE, text=True, check=False)
    program = os.path.join(told.stdout.strip(), NAME)
    if told.returncode or not os.access(program, os.X_OK):
        raise ConfigError(f"it was installed, but there is no {program}")
    os.execv(program, [program, *sys.argv[1:]])
