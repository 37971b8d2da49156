"""The database as the tools use it: one transaction a call, and errors in the words of the tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import deepwork_sql
from deepwork.api import PluginContext
from deepwork.errors import StorageError
from deepwork_sql import Database, Transaction, UnstorableText, check_json
from deepwork_tracking.errors import DatabaseFailure, InvalidCall

T = TypeVar("T")


class TrackingDatabase:
    """The tracked work of a project, in the database that all plugins share."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context

    async def opened(self) -> Database:
        """Return the database.

        Raises:
            DatabaseFailure: It cannot be used.
        """
        with _own_errors():
            return await deepwork_sql.database(self._context)

    async def read(self, query: Callable[[Transaction], T]) -> T:
        """Read in one transaction.

        Raises:
            TrackingError: The query has raised it, or the database cannot be read.
        """
        with _own_errors():
            return await (await self.opened()).read(query)

    async def write(self, change: Callable[[Transaction], T]) -> T:
        """Write in one transaction; if it fails, nothing was changed.

        Raises:
            TrackingError: The change has raised it, or the database cannot be written.
        """
        with _own_errors():
            return await (await self.opened()).write(change)

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse text that not every database can hold.

        Raises:
            InvalidCall: There is some; the error names the argument.
        """
        with _own_errors():
            for name, value in arguments.items():
                check_json(name, value)


@contextmanager
def _own_errors() -> Iterator[None]:
    try:
        yield
    except UnstorableText as error:
        raise InvalidCall(error.message, hint=error.hint) from error
    except StorageError as error:
        raise DatabaseFailure(error.message, hint=error.hint) from error
