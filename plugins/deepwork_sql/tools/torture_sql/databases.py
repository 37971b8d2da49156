"""The databases that are measured, read and written past the library, and how figures are shown."""

from __future__ import annotations

import os
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import psycopg

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql import Database
from deepwork_sql.cluster import Cluster, running_cluster


@contextmanager
def database_of(engine: str, folder: Path) -> Iterator[tuple[str, Cluster | None]]:
    """Make a database, and give its URL and its cluster."""
    if engine == "sqlite":
        yield f"sqlite:///{folder}/{random.getrandbits(32)}.db", None
        return
    with running_cluster() as cluster, cluster.new_database() as url:
        yield url, cluster


@contextmanager
def opened(url: str) -> Iterator[Callable[..., Any]]:
    """Return a function that runs an async one with the open database."""
    os.environ["DEEPWORK_DATABASE_URL"] = url

    def run(function: Callable[..., Any], *arguments: Any) -> Any:
        async def main() -> Any:
            with tempfile.TemporaryDirectory() as root:
                async with open_context("torture", root) as context:
                    return await function(await deepwork_sql.database(context), *arguments)

        return anyio.run(main)

    yield run


async def nothing(_database: Database) -> None:
    """Open the database, which makes its tables."""


def rows_of(url: str, query: str) -> list[Any]:
    """Read past the library."""
    if url.startswith("sqlite"):
        return sqlite3.connect(url.removeprefix("sqlite:///")).execute(query).fetchall()
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def connect_raw(url: str) -> Any:
    """Connect as RAW does."""
    if not url.startswith("sqlite"):
        return psycopg.connect(url)
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1000


def judged(reached: bool) -> dict[str, str]:  # noqa: FBT001 - it is the only argument
    """A goal that is missed is shown as missed; only wrong results are failures."""
    return {"goal": "reached" if reached else "missed"}


def say(engine: str, figure: str, **facts: Any) -> None:
    shown = "  ".join(
        f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={value}" for name, value in facts.items()
    )
    print(f"{engine:10}  {figure:10}  {shown}", flush=True)


def execute_raw(url: str, statement: str) -> None:
    connection = connect_raw(url)
    connection.execute(statement)
    connection.commit()
    connection.close()
