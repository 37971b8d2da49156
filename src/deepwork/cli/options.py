"""Which project a command is about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def path_option(command: CommandT) -> CommandT:
    """Add `--path`: the option, else DEEPWORK_PROJECT, else the current folder."""
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


def probable_root(root: Path) -> Path | None:
    """Find the parent that was probably meant: the nearest with a `.deepwork`, if the root has none."""
    if (root / ".deepwork").exists():
        return None
    return next((parent for parent in root.parents if (parent / ".deepwork").is_dir()), None)
