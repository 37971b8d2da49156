"""Our own command, and programs of clients: always by their full path."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from deepwork.builtin.clients.table import NAME
from deepwork.errors import ConfigError, ProgramMissing
from deepwork.programs.programs import find_program

LASTING = "Install it to stay, with `uv tool install` or `pipx install` from a checkout, and run that `deepwork`."


def installed_command(environment: Mapping[str, str]) -> str:
    """Return the full path of the script `deepwork` of this installation.

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


def first_installed(names: Sequence[str], environment: Mapping[str, str], project: Path) -> str | None:
    """Return the path of the first of these programs in PATH; None if it has none of them."""
    for name in names:
        with suppress(ProgramMissing):
            return find_program(name, environment, project)
    return None


def _caches(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders where `uvx`, `uv run --with` and `pipx run` make environments that they delete again."""
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
