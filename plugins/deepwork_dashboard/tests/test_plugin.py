"""The plugin as a host sees it."""

from __future__ import annotations

from deepwork.testing.contracts import PluginContract


class TestPlugin(PluginContract):
    distribution = "deepwork-dashboard"
