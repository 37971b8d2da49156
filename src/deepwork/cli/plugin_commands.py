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
from deepwork.loading.manager import Provided
from deepwork.project.config import Config, load_config, resolve_root
from deepwork.project.project import load_plugins

log = logging.getLogger("deepwork.cli")


class PluginCommands(NamedTuple):
    """The commands that can be called, and the names of those that two plugins offer."""

    commands: dict[str, click.Command]
    clashing: set[str]


def plugin_commands(core: Collection[str]) -> PluginCommands:
    """Load the commands of all plugins. The core's names win; of two plugins with one name neither is shown."""
    try:
        config = load_config(resolve_root(os.environ.get("DEEPWORK_PROJECT", ".")), os.environ).config
    except DeepWorkError:
        config = Config()  # the command that needs the configuration reports the error
    foreign = [candidate for candidate in installed() if not candidate.builtin]  # the core's plugins have no commands
    answers = load_plugins(config, os.environ, candidates=foreign).commands(click.Command)
    hidden = hidden_commands(answers.items, core)
    for error in [*answers.errors, *hidden.values()]:
        log.warning("%s", error.message)
    commands = {provided.item.name or "": provided.item for provided in answers.items}
    shown = {name: commands[name] for name in sorted(commands) if name not in hidden}
    return PluginCommands(shown, {*hidden}.difference(core))


def hidden_commands(provided: Iterable[Provided[click.Command]], core: Collection[str]) -> dict[str, NameClash]:
    """Say of each command of a plugin that cannot be called why that is so."""
    owners: dict[str, list[Candidate]] = {}
    for command in provided:
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
