"""Contestants whose sessions are in a database, where the plugin `sql` is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import SubprocessError

import click

from bench.contestants import Contestant

COMMAND = "deepwork serve --path {project} --state-store sql"


@contextmanager
def addresses(folder: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield names and URLs of a new SQLite file and a PostgreSQL that is started for it, if they are possible."""
    with ExitStack() as ended:
        try:
            from deepwork_sql.cluster import NoPostgres, running_cluster
        except ImportError:
            click.echo("The stores in databases are not measured: the plugin `sql` is not installed.", err=True)
            yield []
            return
        listed = [("SQLite", f"sqlite:///{folder}/sessions.db")]
        try:
            url = ended.enter_context(ended.enter_context(running_cluster()).new_database())
        except (NoPostgres, SubprocessError, OSError) as error:
            click.echo(f"The store in PostgreSQL is not measured: {error}", err=True)
        else:
            listed.append(("PostgreSQL", url))
        yield listed


@contextmanager
def on_databases(folder: Path) -> Iterator[list[Contestant]]:
    """Yield a contestant on each of the databases."""
    with addresses(folder) as listed:
        yield [Contestant(name, COMMAND, {"DEEPWORK_DATABASE_URL": url}) for name, url in listed]
