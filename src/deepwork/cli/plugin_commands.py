"""Commands that plugins add to `deepwork`."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable
from typing import NamedTuple

import click

from deepwork.errors import DeepWorkError, NameClash
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.faults import hint_to_block, hint_to_keep_one
from deepwork.loading.manager import PluginManager, Provided
from deepwork.project.config import Config, load_config, resolve_root
from deepwork.project.project import load_plugins

log = logging.getLogger("deepwork.cli")


class PluginCommands(NamedTuple):
    """The commands that can be called, and the names that two plugins offer."""

    commands: dict[str, click.Command]
    clashing: set[str]


def plugin_commands(core: Collection[str]) -> PluginCommands:
    """Load the commands of all plugins. The core's names win; of two plugins with one name neither is shown."""
    foreign = [candidate for candidate in installed() if not candidate.builtin]
    answers = _loaded(foreign).ask("deepwork_commands", click.Command)
    hidden = hidden_commands(answers.items, core)
    for error in [*answers.errors, *hidden.values()]:
        log.warning("%s", error.message)
    commands = {provided.item.name or "": provided.item for provided in answers.items}
    shown = {name: commands[name] for name in sorted(commands) if name not in hidden}
    return PluginCommands(shown, {*hidden}.difference(core))


def loaded_features() -> PluginManager:
    """Load the features that are not left out, and no plugin of anybody else."""
    return _loaded([candidate for candidate in installed() if candidate.builtin])


def feature_commands(group: str) -> dict[str, click.Command]:
    """Load the commands that features add to one of the core's groups; features that are left out add none."""
    answers = loaded_features().ask("deepwork_commands", click.Command)
    groups = [item.item for item in answers.items if isinstance(item.item, click.Group) and item.item.name == group]
    return {name: command for item in groups for name, command in item.commands.items()}


def loaded_plugins(root: str) -> PluginManager:
    """Load the features and plugins of a project."""
    return _loaded(None, root)


def _loaded(candidates: Iterable[Candidate] | None, root: str | None = None) -> PluginManager:
    try:
        config = load_config(resolve_root(root or os.environ.get("DEEPWORK_PROJECT", ".")), os.environ).config
    except DeepWorkError:
        config = Config()  # the command that needs the configuration reports the error
    return load_plugins(config, os.environ, candidates=candidates)


def hidden_commands(provided: Iterable[Provided[click.Command]], core: Collection[str]) -> dict[str, NameClash]:
    """Return the reason why a plugin's command cannot be called, by name."""
    owners: dict[str, list[Candidate]] = {}
    for command in provided:
        if command.by.builtin:
            continue  # it adds to a group of the core
        owners.setdefault(command.item.name or "", []).append(command.by)
    hidden: dict[str, NameClash] = {}
    for name, plugins in owners.items():
        if name in core:
            text = f"the command {name!r} of {plugins[0]} is hidden by the core's own"
            hidden[name] = NameClash(text, hint=hint_to_block(plugins[0]))
        elif len(plugins) > 1:
            text = f"the command {name!r} is hidden because two plugins offer it: {' and '.join(map(str, plugins))}"
            hidden[name] = NameClash(text, hint=hint_to_keep_one(plugins))
    return hidden
