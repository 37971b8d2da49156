"""The transports of a server: stdio, and the ones that plugins offer."""

from __future__ import annotations

from deepwork.errors import PluginLoadError
from deepwork.loading.manager import PluginManager
from deepwork.loading.selection import by_name
from deepwork.ports.records import TransportSpec

STDIO = "stdio"


def transports_of(plugins: PluginManager) -> dict[str, TransportSpec]:
    """Return the transports of plugins by their names.

    Raises:
        PluginError: A plugin is broken, or two offer one name.
    """
    answers = plugins.ask("deepwork_transports", TransportSpec).demand()
    offered = by_name("transport", answers, lambda spec: spec.name)
    if STDIO in offered:
        raise PluginLoadError(f"{offered[STDIO].by} offers the transport {STDIO!r}, which is the server's own")
    return {name: provided.item for name, provided in offered.items()}
