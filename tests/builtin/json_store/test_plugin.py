"""The plugin of the store `json` itself, as the kit tests everybody's."""

from __future__ import annotations

from deepwork.testing import PluginContract


class TestJsonStorePlugin(PluginContract):
    plugin = "json_store"
