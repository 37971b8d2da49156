"""Views of what a plugin keeps in the database: its reading functions, each called in a short transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deepwork_dashboard.answers import Mapped, NotThere, page
from deepwork_dashboard.dashboard import Dashboard


class DatabaseViews:
    """What a module of a plugin can read; it is imported at the first call."""

    def __init__(self, dashboard: Dashboard, plugin: str, module: str) -> None:
        self._dashboard = dashboard
        self._plugin = plugin
        self._module = module

    async def views(self) -> Any:
        """Import the module.

        Raises:
            NotThere: The plugin is not installed.
        """
        return await self._dashboard.module(self._plugin, self._module)

    async def read(self, function: str, *arguments: Any) -> Any:
        """Call one of its functions.

        Raises:
            NotThere: The plugin is not installed, or the database does not exist yet: it is not made for a look.
            StorageError: The database does not answer.
            DeepWorkError: The function has raised it.
        """
        query = getattr(await self.views(), function)
        if not self._dashboard.has_database:
            raise NotThere("there is no such thing: no agent has recorded anything in this project yet")
        database = await self._dashboard.database()
        return await database.read(lambda transaction: query(transaction, *arguments))

    async def listed(self, function: str, shown: Callable[[Mapped], Mapped], asked: Mapped, *arguments: Any) -> Mapped:
        """Return one page of a list; an empty one, without making a database, before there is any."""
        self._dashboard.demand(self._plugin)
        if not self._dashboard.has_database:
            return page([], 0, 1, 0)
        from deepwork_sql.pages import ListQuery

        query = ListQuery(**asked)
        rows = await self.read(function, *arguments, query)
        return page([shown(row) for row in rows.rows], rows.total, query.limit, query.offset)

    async def counted(self, function: str) -> Mapped:
        """Return counts; an empty mapping before there is a database."""
        counts: Mapped = await self.read(function) if self._dashboard.has_database else {}
        return counts
