"""Options and arguments that several commands share."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from deepwork.commands.terminal import say
from deepwork.errors import ArgumentError
from deepwork.programs.import_path import check_import_path
from deepwork.text import is_blank

# How many sessions a command lists without `--all`.
NEWEST = 10

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def _of_group(context: click.Context, parameter: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click's form
    """Return true if the option is given, to the command or to its group."""
    group = context.parent
    return value or bool(group and group.params.get(parameter.name or ""))


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.", callback=_of_group)

session_id_argument = click.argument("session_id")


def check_text(text: str, option: str, hint: str = "Write what the agent is to know.") -> None:
    """Refuse a text in which nothing can be seen.

    Raises:
        ArgumentError: It is one.
    """
    if is_blank(text):
        raise ArgumentError(f"{option} is empty; nothing was changed", hint=hint)


def env_option(name: str, *names: str, **attributes: Any) -> Callable[[CommandT], CommandT]:
    """Add an option that can be given in the environment too: `DEEPWORK_PORT` for `--port`."""
    return click.option(name, *names, **in_environment(name), **attributes)


def in_environment(name: str) -> dict[str, Any]:
    """Return the arguments that let an option be given in the environment too."""
    return {"envvar": "DEEPWORK_" + name.removeprefix("--").replace("-", "_").upper(), "show_envvar": True}


def path_option(command: CommandT) -> CommandT:
    """Add `--path`: the project of the option, else of DEEPWORK_PROJECT, else the nearest one from here upwards."""
    return _path_option(_nearest)(command)


def exact_path_option(command: CommandT) -> CommandT:
    """Add `--path` for commands that programs run: where nothing is given, it is the current folder and no other."""
    return _path_option(_given)(command)


def _path_option(callback: Callable[[click.Context, click.Parameter, str], str]) -> Callable[[CommandT], CommandT]:
    return click.option(
        "--path",
        "root",
        default=".",
        envvar="DEEPWORK_PROJECT",
        show_envvar=True,
        metavar="PATH",
        help="Project root directory (default: current directory).",
        callback=callback,
    )


def _nearest(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Replace the current folder by the nearest project above it, and say so."""
    name = parameter.name or ""
    given, own, group = ParameterSource.COMMANDLINE, context.get_parameter_source(name), context.parent
    if own is not given and group and group.get_parameter_source(name) is given:
        return str(group.params[name])
    if own is not ParameterSource.DEFAULT:
        return _given(context, parameter, value)
    root = nearest_project(Path.cwd())
    if root is not None:
        value = str(root)
        # A group with the same option has said so already.
        if context.parent is None or context.parent.params.get("root") != value:
            say(f"In the project {root}.", err=True)
    return _given(context, parameter, value)


def nearest_project(folder: Path) -> Path | None:
    """Find the user's own project above a folder, on one file system and below the home folder.

    Another user's `.deepwork` could run commands that this user never looked at.
    """
    if (folder / ".deepwork").exists():
        return None
    home = Path(os.path.realpath(os.path.expanduser("~")))
    device = folder.stat().st_dev
    for parent in folder.parents:
        if home.is_relative_to(parent) or parent.stat().st_dev != device:
            return None
        if is_own_folder(parent / ".deepwork") and parent.stat().st_uid == os.getuid():
            return parent
    return None


def is_own_folder(path: Path) -> bool:
    """True if this is a folder, not a link to one, that belongs to the user."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


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


def _given(_context: click.Context, _parameter: click.Parameter, root: str) -> str:
    """Refuse a project whose modules Python would import in place of ours."""
    check_import_path(Path(os.path.realpath(root)))
    return root


def probable_root(root: Path) -> Path | None:
    """Return the nearest parent with a `.deepwork`, which was probably meant, if the root has none."""
    if (root / ".deepwork").exists():
        return None
    return next((parent for parent in root.parents if (parent / ".deepwork").is_dir()), None)
