"""The plugin as a host sees it."""

from __future__ import annotations

from deepwork.testing import PluginContract


class TestPlugin(PluginContract):
    plugin = "orchestration"
