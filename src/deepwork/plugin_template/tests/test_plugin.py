from __future__ import annotations

from deepwork.testing import PluginContract


class TestPlugin(PluginContract):
    plugin = "acme"
