"""The hooks: the pages at `/plugins/dashboard/`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deepwork import hookimpl

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from deepwork.api import HttpApp


@hookimpl
def deepwork_http() -> Iterator[HttpApp]:
    """The pages and their API."""
    from deepwork.api import HttpApp

    def make() -> Starlette:
        from deepwork_dashboard.app import dashboard_app

        return dashboard_app()

    yield HttpApp(make)
