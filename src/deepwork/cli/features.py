"""The commands of features. Their names are known without importing any, and without reading a configuration whole.

A package of a feature with commands says them in its `COMMANDS`; its module `plugin` has the hooks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import click

from deepwork.commands.spec import CommandSpec
from deepwork.errors import DeepWorkError
from deepwork.loading.features import FEATURES
from deepwork.paths.user_folders import user_config_file
from deepwork.paths.workspace import Workspace

_HOOKS = ".plugin"


def feature_commands() -> dict[str, CommandSpec]:
    """Return the commands of all features, by their names."""
    packages = [module.removesuffix(_HOOKS) for module in FEATURES.values() if module.endswith(_HOOKS)]
    commands: dict[str, CommandSpec] = {}
    for package in packages:
        commands.update(getattr(import_module(package), "COMMANDS", {}))
    return commands


def feature_of(spec: CommandSpec) -> str | None:
    """Return the feature of a command; None if it is the kernel's."""
    package = spec.target.partition(":")[0].rpartition(".")[0]
    return next((name for name, module in FEATURES.items() if module.removesuffix(_HOOKS) == package), None)


# No configuration is longer than the limit of YAML files.
MAX_READ = 4 * 1024 * 1024


def root_in(arguments: Sequence[str]) -> Path:
    """Return the project that a command line names, without parsing it: the command is not known yet."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if argument == "--path":
            return Path(following)
        if argument.startswith("--path="):
            return Path(argument.removeprefix("--path="))
    return Path(os.environ.get("DEEPWORK_PROJECT", "."))


def is_left_out(feature: str, root: Path, environment: Mapping[str, str] = os.environ) -> bool:
    """True if a feature is left out, by the environment or by the configuration of the user or the project.

    A configuration is read whole only if it may block something: hooks of clients run often.
    """
    if feature in (name.strip() for name in environment.get("DEEPWORK_NO_PLUGINS", "").split(",")):
        return True
    with suppress(DeepWorkError, OSError):  # the command itself tells what is wrong with a configuration
        files = (user_config_file(environment), Workspace(Path(os.path.realpath(root))).config_file)
        if any(_may_block(file) for file in files):
            from deepwork.project.config import load_config, resolve_root

            return feature in load_config(resolve_root(root), environment).config.plugins.block
    return False


def _may_block(file: Path) -> bool:
    """True if a line could be a `plugins.block`. The file of `deepwork init` has one as a comment."""
    if not file.is_file():  # a pipe would wait for a writer
        return False
    with file.open("rb") as content:
        lines = [line.strip() for line in content.read(MAX_READ).splitlines()]
    return any(b"block" in line for line in lines if not line.startswith(b"#"))


def silent_command(name: str) -> click.Command:
    """Make a command that takes anything, prints nothing and ends with 0."""
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(name, callback=lambda: None, context_settings=settings, add_help_option=False)
