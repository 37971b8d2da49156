"""The hooks: a command, and the pages at `/plugins/dashboard/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from click import Command
    from starlette.applications import Starlette

    from deepwork.api import Engine, HttpApp, PluginContext, Project


@hookimpl
def deepwork_commands() -> Iterator[Command]:
    """`deepwork dashboard`."""
    from deepwork_dashboard.cli import dashboard

    yield dashboard


@hookimpl
def deepwork_http(context: PluginContext, engine: Engine, project: Project) -> Iterator[HttpApp]:
    """The pages, their API and the live changes; beside them the notifications of what waits are sent."""
    from deepwork.api import HttpApp
    from deepwork_dashboard.places import ITEM, PUBLIC

    def make() -> Starlette:
        from deepwork_dashboard.app import dashboard_app

        return dashboard_app(context, engine, project)

    async def notify() -> None:
        await context.inbox().notify()

    yield HttpApp(make, public=PUBLIC, beside=notify, item=ITEM)
