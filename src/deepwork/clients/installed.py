"""Our own command, and programs of others: always by their full path."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from deepwork.clients.table import NAME
from deepwork.errors import ConfigError

LASTING = "Install it to stay, with `uv tool install` or `pipx install` from a checkout, and run that `deepwork`."


def installed_command(environment: Mapping[str, str]) -> str:
    """Give the full path of the script `deepwork` of this installation.

    Raises:
        ConfigError: The environment is a passing one, or has no such script.
    """
    prefix = Path(sys.prefix).resolve()
    for cache in _caches(environment):
        if prefix.is_relative_to(cache.resolve()):
            raise ConfigError(f"this deepwork runs from {prefix}, which is deleted some day", hint=LASTING)
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    for folder in folders:
        script = Path(folder) / NAME
        if os.access(script, os.X_OK):
            return str(script)
    raise ConfigError(f"there is no script {NAME!r} in {folders[0]}", hint=LASTING)


def find_program(names: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """Find a program in the absolute folders of PATH: the current folder may belong to a stranger."""
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        for name in names:
            program = os.path.join(folder, name)
            if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
                return program
    return None


def _caches(environment: Mapping[str, str]) -> list[Path]:
    """Give the folders in which `uvx`, `uv run --with` and `pipx run` make environments that they delete again."""
    home = Path(os.path.expanduser("~"))
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    pipx = Path(environment.get("PIPX_HOME") or home / ".local" / "share" / "pipx")
    return [
        Path(environment.get("UV_CACHE_DIR") or cache / "uv"),
        home / "Library" / "Caches" / "uv",
        pipx / ".cache",
        home / ".local" / "pipx" / ".cache",
        cache / "pipx",
        home / "Library" / "Caches" / "pipx",
    ]
