"""The stores in which tortured servers keep their sessions, and how to read them past the servers."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import click

if TYPE_CHECKING:
    from deepwork_sql.cluster import Cluster

STORES = ("json", "sqlite", "postgresql")

store_option = click.option(
    "--store", type=click.Choice(STORES), default="json", show_default=True, help="Where sessions are kept."
)
database_option = click.option("--store", type=click.Choice(STORES[1:]), default="sqlite", show_default=True)

_OPENING = threading.Lock()

Document = tuple[str, bytes | str, int | None]  # its name, its JSON, and its revision if that stands beside it


class Files:
    """A file for each session, in the state folder of the project."""

    env: Mapping[str, str] = {}

    def documents(self, state: Path) -> list[Document]:
        """Read all sessions."""
        return [(file.name, file.read_bytes(), None) for file in state.glob("session_*.json")]

    def contents(self) -> dict[str, Any]:
        """Return what is stored elsewhere than in the state folder."""
        return {}

    def forget(self, state: Path) -> None:
        """Delete all sessions."""
        for file in state.glob("session_*.json"):
            file.unlink()


@dataclass(frozen=True)
class Database:
    """A database of the plugin `sql`, on either engine; with its server, if it has one."""

    url: str
    cluster: Cluster | None = None

    @property
    def env(self) -> Mapping[str, str]:
        """What tells servers of it; tests leave plugins out."""
        return {"DEEPWORK_STATE_STORE": "sql", "DEEPWORK_DATABASE_URL": self.url, "DEEPWORK_NO_PLUGINS": ""}

    def documents(self, _state: Path) -> list[Document]:
        """Read all sessions."""
        return self.rows("SELECT session_id, document, revision FROM deepwork_sessions")

    def contents(self) -> dict[str, Any]:
        """Return every session, and how many events there are."""
        events = self.rows("SELECT count(*) FROM deepwork_events")
        return {name: (document, revision) for name, document, revision in self.documents(Path())} | {"events": events}

    def forget(self, _state: Path) -> None:
        """Delete all sessions; their events stay."""
        self.run_sql("DELETE FROM deepwork_sessions")

    def rows(self, query: str) -> list[Any]:
        """Run a query past the library."""
        with self.connection() as connection:
            return [*connection.execute(query).fetchall()]

    def run_sql(self, *statements: str) -> None:
        """Run statements past the library, each by itself."""
        with self.connection() as connection:
            for statement in statements:
                connection.execute(statement)

    def connection(self) -> AbstractContextManager[Any]:
        """Connect past the library; what is done is not part of a transaction."""
        if self.url.startswith("sqlite"):
            return closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=60, isolation_level=None))
        import psycopg

        return psycopg.connect(self.url, autocommit=True)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run an async function with the database as plugins open it."""
        from bench.items import opened_database

        async def main() -> Any:
            async with AsyncExitStack() as ended:
                with _OPENING:  # a variable of this process says which database it is
                    database = await ended.enter_async_context(opened_database(self.url))
                return await function(database, *arguments)

        return anyio.run(main)


Store = Files | Database


@contextmanager
def opened_store(name: str, folder: Path) -> Iterator[Store]:
    """Make an empty store; for PostgreSQL with a server of its own."""
    if name == "json":
        yield Files()
    elif name == "sqlite":
        yield _with_tables(Database(f"sqlite:///{folder}/torture.db"))
    else:
        from deepwork_sql.cluster import running_cluster

        with running_cluster() as cluster, cluster.new_database() as url:
            yield _with_tables(Database(url, cluster))


def _with_tables(database: Database) -> Database:
    """Open a database once, which makes its tables."""
    database.run(lambda _database: anyio.lowlevel.checkpoint())
    return database
