"""The context of each plugin, made from configuration and environment."""

from __future__ import annotations

import os
from collections.abc import Callable

from deepwork.config import Loaded
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
