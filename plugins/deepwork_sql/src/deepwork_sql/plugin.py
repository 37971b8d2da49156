"""The hooks: a state store, two commands, a check and the feed over WebSocket."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command
    from starlette.applications import Starlette

    from deepwork.api import Check, HttpApp, PluginContext, StateStoreSpec


@hookimpl
def deepwork_state_stores(context: PluginContext) -> Iterator[StateStoreSpec]:
    """The store `sql`."""
    from deepwork.api import StateStoreSpec
    from deepwork_sql import database
    from deepwork_sql.settings import SqlSettings
    from deepwork_sql.store import SqlStore

    context.settings(SqlSettings)  # read now, so that `deepwork trust` can show what waits for it
    yield StateStoreSpec(name="sql", open=partial(SqlStore, partial(database, context)))


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """`deepwork store` and `deepwork events`."""
    from deepwork_sql.cli import events, store

    yield store
    yield events


@hookimpl
def deepwork_checks(context: PluginContext) -> Iterator[Check]:
    """The check `sql`."""
    from deepwork_sql.checks import check

    yield check(context)


@hookimpl
def deepwork_http(context: PluginContext) -> Iterator[HttpApp]:
    """The feed, at `/plugins/sql/events`."""
    from deepwork.api import HttpApp

    def app() -> Starlette:
        from deepwork_sql.http import feed_app

        return feed_app(context)

    yield HttpApp(app=app)
