"""Options and arguments that several commands share."""

from __future__ import annotations

import os
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
        callback=_importable,
        help="Project root directory (default: current directory).",
    )
    return option(command)


def _importable(_context: click.Context, _parameter: click.Parameter, root: str) -> str:
    """Refuse a project whose modules Python would import in place of ours."""
    from deepwork.project.config import check_import_path

    check_import_path(Path(os.path.realpath(root)))
    return root


def probable_root(root: Path) -> Path | None:
    """Return the nearest parent with a `.deepwork`, which was probably meant, if the root has none."""
    if (root / ".deepwork").exists():
        return None
    return next((parent for parent in root.parents if (parent / ".deepwork").is_dir()), None)
