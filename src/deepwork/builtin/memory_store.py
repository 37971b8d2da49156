"""The store `memory`, for experiments."""

from __future__ import annotations

from collections.abc import Iterator

from deepwork import hookimpl
from deepwork.api import MemoryStore, StateStoreSpec


@hookimpl
def deepwork_state_stores() -> Iterator[StateStoreSpec]:
    """The store `memory`."""
    yield StateStoreSpec(name="memory", open=lambda _workspace: MemoryStore(), persists=False)
