"""The parts of a server that commands use without one: stores and jobs, no FastMCP."""

from __future__ import annotations

import os

from deepwork.config import Loaded, load_config, resolve_root
from deepwork.jobs.catalogue import Catalogue
from deepwork.loading.catalog import by_name, choose
from deepwork.loading.contexts import contexts
from deepwork.loading.manager import PluginManager
from deepwork.ports.state_store import StateStore


class House:
    """One project as its configuration and the installed plugins make it."""

    def __init__(self, root: str) -> None:
        self.loaded: Loaded = load_config(resolve_root(root), os.environ)
        self._plugins = PluginManager(blocked=self.loaded.config.plugins.block)
        self._contexts = contexts(self.loaded.config, self.loaded.workspace)

    def catalogue(self) -> Catalogue:
        """Join all job sources."""
        sources = by_name("job source", self._plugins.job_sources(self._contexts), lambda source: source.name)
        return Catalogue(one.item for one in sources.values())

    def store(self) -> StateStore:
        """Make the configured state store; entering it opens it."""
        stores = by_name("state store", self._plugins.state_stores(self._contexts), lambda spec: spec.name)
        option = "state.store"
        spec = choose("state store", self.loaded.config.state.store, stores, option=option)
        return spec.item.open(self.loaded.workspace)
