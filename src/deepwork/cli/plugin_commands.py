"""Commands that plugins add to `deepwork`."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterable

import click

from deepwork.errors import DeepWorkError
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import Provided
from deepwork.project.config import Config, load_config, resolve_root
from deepwork.project.project import load_plugins

log = logging.getLogger("deepwork.cli")


def plugin_commands(core: Collection[str]) -> dict[str, click.Command]:
    """Load the commands of all plugins. The core's names win; of two plugins with one name neither is shown."""
    try:
        config = load_config(resolve_root(os.environ.get("DEEPWORK_PROJECT", ".")), os.environ).config
    except DeepWorkError:
        config = Config()  # the command that needs the configuration reports the error
    foreign = [candidate for candidate in installed() if not candidate.builtin]  # the core's plugins have no commands
    answers = load_plugins(config, os.environ, candidates=foreign).commands(click.Command)
    hidden = hidden_commands(answers.items, core)
    for text in [*(error.message for error in answers.errors), *hidden.values()]:
        log.warning("%s", text)
    commands = {provided.item.name or "": provided.item for provided in answers.items}
    return {name: commands[name] for name in sorted(commands) if name not in hidden}


def hidden_commands(provided: Iterable[Provided[click.Command]], core: Collection[str]) -> dict[str, str]:
    """Say of each command of a plugin that cannot be called why that is so."""
    owners: dict[str, list[Candidate]] = {}
    for command in provided:
        owners.setdefault(command.item.name or "", []).append(command.by)
    hidden: dict[str, str] = {}
    for name, plugins in owners.items():
        if name in core:
            hidden[name] = f"the command {name!r} of {plugins[0]} is hidden by the core's own"
        elif len(plugins) > 1:
            hidden[name] = (
                f"the command {name!r} is hidden because two plugins offer it: {' and '.join(map(str, plugins))}"
            )
    return hidden
