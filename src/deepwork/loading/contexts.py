"""The context of each plugin, made from configuration and environment."""

from __future__ import annotations

import os
from collections.abc import Callable

from deepwork.config import Config
from deepwork.ports.context import PluginContext
from deepwork.workspace import Workspace

ContextOf = Callable[[str], PluginContext]


def contexts(config: Config, workspace: Workspace, platform: str | None = None) -> ContextOf:
    """Give the function that makes a plugin's context of its name."""

    def context_of(plugin: str) -> PluginContext:
        settings = config.plugins.settings.get(plugin, {})
        return PluginContext(plugin, workspace, platform, os.environ, settings)

    return context_of
