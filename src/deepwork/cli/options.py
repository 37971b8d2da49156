"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., object])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

session_id_argument = click.argument("session_id")


def path_option(command: CommandT) -> CommandT:
    """Add `--path`: the project of the option, else of DEEPWORK_PROJECT, else the current folder."""
    option = click.option(
        "--path",
        "root",
        default=".",
        envvar="DEEPWORK_PROJECT",
        show_envvar=True,
        metavar="PATH",
        help="Project root directory (default: current directory).",
    )
    return option(command)


def plugins_dir_option(command: CommandT) -> CommandT:
    """Add `--plugins-dir`; commands without it take DEEPWORK_PLUGINS_DIR all the same."""
    option = click.option(
        "--plugins-dir",
        envvar="DEEPWORK_PLUGINS_DIR",
        show_envvar=True,
        metavar="DIR",
        help="Also load the plugins in this folder, each of which is one .py file.",
    )
    return option(command)


def probable_root(root: Path) -> Path | None:
    """Return the nearest parent with a `.deepwork`, which was probably meant, if the root has none."""
    if (root / ".deepwork").exists():
        return None
    return next((parent for parent in root.parents if (parent / ".deepwork").is_dir()), None)
