"""Write what the current schema of a plugin looks like, with rows in it: `python tools/dump_schema.py PLUGIN`.

Run it when a migration has landed, and commit the two files: tests upgrade every one of them, on both engines. The rows
are those of `tests/schema_rows.py` of the plugin.
"""

from __future__ import annotations

import os
import runpy
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import click

from deepwork.api import open_context
from deepwork_sql import Database, Transaction, database, opening
from deepwork_sql.cluster import find_program, running_cluster
from deepwork_sql.schema import SCHEMA, installed_schemas

PLUGINS = Path(__file__).parent.parent / "plugins"


async def fill(url: str, rows: Callable[[Transaction], None]) -> None:
    """Make the tables of the plugin and its rows."""
    os.environ["DEEPWORK_DATABASE_URL"] = url
    with tempfile.TemporaryDirectory() as root:
        async with open_context("sql", root) as context:
            opened: Database = await database(context)
            await opened.write(rows)


def dump_sqlite(folder: Path, rows: Callable[[Transaction], None]) -> str:
    """Dump a new SQLite file."""
    anyio.run(fill, f"sqlite:///{folder}/dump.db", rows)
    with closing(sqlite3.connect(folder / "dump.db")) as connection:
        return "\n".join(connection.iterdump()) + "\n"


def dump_postgres(rows: Callable[[Transaction], None]) -> str:
    """Dump a new database of PostgreSQL, as statements that need no `psql`."""
    with running_cluster() as cluster, cluster.new_database() as url:
        anyio.run(fill, url, rows)
        command = [find_program("pg_dump"), "--inserts", "--no-owner", "--no-privileges", url]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if line and not line.startswith(("--", "\\", "SET "))]
    return "\n".join(line for line in lines if "set_config" not in line) + "\n"


@click.command()
@click.argument("plugin", type=click.Choice(["sql", "orchestration", "tracking"]))
def main(plugin: str) -> None:
    """Write the dumps of a plugin's current schema, for both engines."""
    tests = PLUGINS / f"deepwork_{plugin}" / "tests"
    rows = runpy.run_path(str(tests / "schema_rows.py"))["rows"]
    # Plugins whose tools use this one have rows in its tables too; other plugins' tables are left out.
    name = SCHEMA.name if plugin == "sql" else plugin
    needed = [item for item in installed_schemas() if item.schema.name in (SCHEMA.name, name)]
    [dumped] = [item.schema for item in needed if item.schema.name == name]
    opening.installed_schemas = lambda: needed
    with tempfile.TemporaryDirectory() as folder:
        texts = {"sqlite": dump_sqlite(Path(folder), rows), "postgresql": dump_postgres(rows)}
    for engine, text in texts.items():
        file = tests / "data" / "schemas" / f"{dumped.version:04}.{engine}.sql"
        file.write_text(text, encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
