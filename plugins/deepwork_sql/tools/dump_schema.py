"""Write what the current schema looks like, with rows in it: `python plugins/deepwork_sql/tools/dump_schema.py`.

Run it when a migration has landed, and commit the two files: tests upgrade every one of them, on both engines.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import anyio

from deepwork.api import Session, open_context
from deepwork_sql import Database, Transaction, database, leases, opening, schema
from deepwork_sql.cluster import find_program, running_cluster
from deepwork_sql.schema import SCHEMA, installed_schemas
from deepwork_sql.session_rows import SessionRows

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "schemas"
SESSION = {
    "schema_version": 1,
    "session_id": "s1",
    "job_name": "demo",
    "workflow_name": "main",
    "current_step_id": "a",
    "started_at": "2026-01-01T12:00:00.000000+00:00",
    "updated_at": "2026-01-01T12:00:00.000000+00:00",
    "goal": "Größe, 数据",
    "history": [{"at": "2026-01-01T12:00:00.000000+00:00", "kind": "started", "detail": {"n": 1}}],
}


def rows(transaction: Transaction) -> None:
    """Write at least one row into each table."""
    SessionRows("laptop", "/projects/demo").save(transaction, Session.model_validate(SESSION), None)
    transaction.emit("acme", "task:done", workflow_id="wf_1", data={"b": [1, None], "a": "ü"}, principal="ada")
    leases.take(transaction, "t1", holder="ada", milliseconds=1000)
    transaction.once(principal="ada", tool="claim", request_id="r1", arguments={"n": 1}, work=lambda: {"task": "t1"})


async def fill(url: str) -> None:
    """Make the tables of this plugin and these rows."""
    os.environ["DEEPWORK_DATABASE_URL"] = url
    with tempfile.TemporaryDirectory() as root:
        async with open_context("sql", root) as context:
            opened: Database = await database(context)
            await opened.write(rows)


def dump_sqlite(folder: Path) -> str:
    """Dump a new SQLite file."""
    anyio.run(fill, f"sqlite:///{folder}/dump.db")
    with closing(sqlite3.connect(folder / "dump.db")) as connection:
        return "\n".join(connection.iterdump()) + "\n"


def dump_postgres() -> str:
    """Dump a new database of PostgreSQL, as statements that need no `psql`."""
    with running_cluster() as cluster, cluster.new_database() as url:
        anyio.run(fill, url)
        command = [find_program("pg_dump"), "--inserts", "--no-owner", "--no-privileges", url]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if line and not line.startswith(("--", "\\", "SET "))]
    return "\n".join(line for line in lines if "set_config" not in line) + "\n"


def main() -> None:
    """Write both files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Plugins whose tools use this one have rows in its tables too; those of others are none of theirs.
    needed = [item for item in installed_schemas() if item.schema.name in (schema.SCHEMA.name, SCHEMA.name)]
    opening.installed_schemas = lambda: needed
    with tempfile.TemporaryDirectory() as folder:
        texts = {"sqlite": dump_sqlite(Path(folder)), "postgresql": dump_postgres()}
    for engine, text in texts.items():
        file = FOLDER / f"{SCHEMA.version:04}.{engine}.sql"
        file.write_text(text, encoding="utf-8")
        print(file)


if __name__ == "__main__":
    main()
