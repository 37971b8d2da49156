"""The context of each plugin, made from configuration and environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from deepwork.config import Loaded, load_config, resolve_root
from deepwork.ports.context import PluginContext
from deepwork.ports.shared import SharedObjects

ContextOf = Callable[[str], PluginContext]


def contexts(loaded: Loaded, shared: SharedObjects, platform: str | None = None) -> ContextOf:
    """Give the function that makes a plugin's context of its name."""

    def context_of(plugin: str) -> PluginContext:
        return PluginContext(
            plugin,
            loaded.workspace,
            loaded.trust,
            platform,
            os.environ,
            loaded.user_settings.get(plugin, {}),
            loaded.project_settings.get(plugin, {}),
            shared,
        )

    return context_of


def open_context(plugin: str, root: str | Path, *, platform: str | None = None) -> PluginContext:
    """Make the context of a plugin for one of its commands of the terminal, which no server has given one.

    Args:
        plugin: The plugin's name.
        root: The project's folder.
        platform: Name of the agent's platform.

    Raises:
        ConfigError: The project or its configuration cannot be used.
    """
    return contexts(load_config(resolve_root(root), os.environ), SharedObjects(), platform)(plugin)
