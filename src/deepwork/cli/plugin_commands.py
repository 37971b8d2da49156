"""Commands that plugins add to `deepwork`."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection

import click

from deepwork.errors import DeepWorkError
from deepwork.loading.discovery import Candidate, installed
from deepwork.project.config import Config, load_config, resolve_root
from deepwork.project.project import load_plugins

log = logging.getLogger("deepwork.cli")


def plugin_commands(core: Collection[str]) -> dict[str, click.Command]:
    """Load the commands of all plugins. The core's names win; of two plugins with one name neither is shown."""
    try:
        config = load_config(resolve_root(os.environ.get("DEEPWORK_PROJECT", ".")), os.environ).config
    except DeepWorkError:
        config = Config()  # the command that needs the configuration reports the error
    commands: dict[str, click.Command] = {}
    owners: dict[str, list[Candidate]] = {}
    foreign = [candidate for candidate in installed() if not candidate.builtin]  # the core's plugins have no commands
    for provided in load_plugins(config, os.environ, candidates=foreign).commands(click.Command):
        name = provided.item.name or ""
        owners.setdefault(name, []).append(provided.by)
        commands[name] = provided.item
    for name, plugins in owners.items():
        if name in core:
            log.warning("the command %r of %s is hidden by the core's own", name, plugins[0])
        elif len(plugins) > 1:
            log.warning(
                "the command %r is hidden because two plugins offer it: %s", name, " and ".join(map(str, plugins))
            )
    return {name: commands[name] for name in sorted(commands) if name not in core and len(owners[name]) == 1}
