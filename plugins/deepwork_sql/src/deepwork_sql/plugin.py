"""The hooks: the state store `sql`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from deepwork.api import PluginContext, StateStoreSpec


@hookimpl
def deepwork_state_stores(context: PluginContext) -> Iterator[StateStoreSpec]:
    """The store `sql`."""
    from deepwork.api import StateStoreSpec
    from deepwork_sql import database
    from deepwork_sql.settings import SqlSettings
    from deepwork_sql.store import SqlStore

    context.settings(SqlSettings)  # now, so that `deepwork trust` can show what waits for it
    yield StateStoreSpec(name="sql", open=lambda workspace: SqlStore(partial(database, context), workspace))
