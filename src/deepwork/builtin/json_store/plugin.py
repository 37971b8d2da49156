"""The hooks of the feature `json_store`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from deepwork.api import Check, PluginContext, StateStoreSpec


@hookimpl
def deepwork_state_stores() -> Iterator[StateStoreSpec]:
    """The store `json`, which is the default."""
    from deepwork.api import StateStoreSpec
    from deepwork.builtin.json_store.store import JsonStore

    yield StateStoreSpec(name="json", open=JsonStore)


@hookimpl
def deepwork_checks(context: PluginContext) -> Iterator[Check]:
    """The folder of sessions, as far as the system tells."""
    from deepwork.api import Check
    from deepwork.builtin.json_store.checks import folder_findings

    yield Check("sessions", partial(folder_findings, context.workspace))
