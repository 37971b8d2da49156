"""Databases of earlier releases are brought up to date with the rows in them, and too new ones are refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from anyio import to_thread
from sqlalchemy import inspect, text

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql import leases, opening
from deepwork_sql.address import address_of
from deepwork_sql.schema import SCHEMA, InstalledSchema, Schema
from deepwork_sql.session_rows import Save, SessionRows
from deepwork_sql.tables import metadata

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parent / "data"
DUMPED = sorted({int(file.name[:4]) for file in (DATA / "schemas").glob("*.sql")})
RELEASE = "1.0.0.dev0"


def load(url, version):
    engine = url.partition(":")[0]
    script = (DATA / "schemas" / f"{version:04}.{engine}.sql").read_text()
    if engine == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(url) as connection:
            connection.execute("SET search_path = public")
            connection.execute(script)


@pytest.fixture
def acme(tmp_path, monkeypatch):
    """A package of migrations; each statement is one more migration of the schema `acme`."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def acme(release, *statements, oldest_release=RELEASE):
        versions = tmp_path / deepwork_sql.new_id("migrations") / "versions"
        versions.mkdir(parents=True, exist_ok=True)
        (versions.parent / "__init__.py").touch()
        for number, statement in enumerate(statements, 1):
            before = repr(f"{number - 1:04}") if number > 1 else None
            (versions / f"{number:04}_x.py").write_text(
                f"from alembic import op\nrevision = '{number:04}'\ndown_revision = {before}\n"
                f"def upgrade():\n    op.execute({statement!r})\n"
            )
        return InstalledSchema(Schema("acme", versions.parent.name, len(statements), oldest_release), release)

    return acme


@pytest.fixture
def install(monkeypatch):
    """Let these schemas be the installed ones, beside that of this plugin."""

    def install(*schemas):
        everything = [InstalledSchema(SCHEMA, RELEASE), *schemas]
        monkeypatch.setattr(opening, "installed_schemas", lambda: everything)

    return install


@pytest.fixture
def opened(database_url):
    """Open the database anew."""

    def opened(*, migrate=True):
        return opening.open_database(address_of(database_url, "the test", machine="laptop", migrate=migrate))

    return opened


def test_every_schema_that_has_landed_is_kept_as_a_dump():
    assert list(range(1, SCHEMA.version + 1)) == DUMPED, "run tools/dump_schema.py sql"


@pytest.mark.parametrize("version", DUMPED)
async def test_a_database_of_an_earlier_schema_works_with_the_rows_in_it(database_url, opened, version):
    await to_thread.run_sync(load, database_url, version)
    async with opened() as database:
        rows = SessionRows("laptop", "/projects/demo")
        session = await database.read(lambda tx: rows.load(tx, "s1"))
        assert (session.goal, session.revision) == ("Größe, 数据", 1)
        first, second = await database.feed(None)
        assert (first.event, second.data) == ("session:started", {"b": [1, None], "a": "ü"})
        lease = await database.write(lambda tx: leases.take(tx, "t1", holder="bob", milliseconds=1000))
        assert lease.fence == 2
        changed = session.model_copy(update={"goal": "other"})
        [saved] = await database.write(rows.saving([Save(changed, 1)]))
        assert saved.result == 2
        await database.write(lambda tx: tx.emit("acme", "after", workflow_id=None, data={}))
        assert [event.event for event in await database.feed(second.id)] == ["after"]


@pytest.mark.smoke
async def test_the_migrations_make_the_tables_that_the_code_describes(opened):
    def stored(tx):
        tables = inspect(tx.connection)
        return {
            name: {column["name"]: column["nullable"] for column in tables.get_columns(name)}
            for name in tables.get_table_names()
        }

    async with opened() as database:
        tables = await database.read(stored)
    for name, table in metadata.tables.items():
        assert tables[name] == {column.name: column.nullable for column in table.columns}


async def test_old_and_new_release_work_on_one_database_during_a_rolling_upgrade(opened, install, acme):
    """A migration that only adds leaves the oldest release as it is."""
    table = "CREATE TABLE acme_things (id INTEGER PRIMARY KEY)"
    old = acme("1.0", table, oldest_release="1.0")
    new = acme("1.1", table, "ALTER TABLE acme_things ADD note TEXT", oldest_release="1.0")
    insert = text("INSERT INTO acme_things (id) VALUES (:id)")
    install(old)
    async with opened() as running:
        await running.write(lambda tx: tx.execute(insert, {"id": 1}))
        install(new)
        async with opened() as upgraded:
            await upgraded.write(lambda tx: tx.execute(text("INSERT INTO acme_things (id, note) VALUES (2, 'x')")))
            await running.write(lambda tx: tx.execute(insert, {"id": 3}))
            count = await upgraded.read(lambda tx: tx.execute(text("SELECT count(*) FROM acme_things")).scalar())
    assert count == 3
    install(old)
    async with opened() as restarted:
        await restarted.write(lambda tx: tx.execute(insert, {"id": 4}))


async def test_a_release_that_is_too_old_is_refused_with_the_one_that_is_needed(opened, install, acme):
    install(acme("2.0", "CREATE TABLE acme_things (id INTEGER)", oldest_release="2.0"))
    async with opened():
        pass
    install(acme("1.9", "CREATE TABLE acme_things (id INTEGER)", oldest_release="1.0"))
    with pytest.raises(deepwork_sql.DatabaseError, match=r"needs release 2\.0 or newer; this is 1\.9"):
        async with opened():
            pass


async def test_a_migration_that_fails_leaves_the_database_as_it_was(opened, install, acme):
    install(acme("1.0", "CREATE TABLE acme_things (id INTEGER)", "CREATE TABLE acme_things (id INTEGER)"))
    with pytest.raises(Exception, match="acme_things"):
        async with opened():
            pass
    install(acme("1.0", "CREATE TABLE acme_things (id INTEGER)"))
    async with opened() as database:
        assert await database.read(lambda tx: tx.execute(text("SELECT count(*) FROM acme_things")).scalar()) == 0


async def test_with_migrate_false_only_the_command_migrates(project_on_database, opened):
    with pytest.raises(deepwork_sql.DatabaseError) as error:
        async with opened(migrate=False):
            pass
    assert error.value.hint == "Run `deepwork store migrate` once."
    project_on_database.write(".deepwork/config.yml", "plugins: {settings: {sql: {migrate: false}}}\n")
    command = [sys.executable, "-m", "deepwork", "store", "migrate", "--path", str(project_on_database.root)]
    outputs = [await to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, text=True)) for _ in "ab"]
    # Schemas of other installed plugins follow.
    assert [output.stdout.partition("\n")[0] for output in outputs] == [
        f"deepwork: version 0 -> {SCHEMA.version}",
        f"deepwork: version {SCHEMA.version}, up to date",
    ]
    async with opened(migrate=False) as database:
        assert await database.feed(None) == []


@pytest.mark.slow
async def test_processes_that_open_a_new_database_at_once_migrate_it_once(project_on_database):
    code = (
        "import sys, anyio, deepwork_sql\nfrom deepwork.api import open_context\n"
        "async def main():\n"
        "    async with open_context('acme', sys.argv[1]) as context:\n"
        "        database = await deepwork_sql.database(context)\n"
        "        await database.write(lambda tx: tx.emit('acme', 'up', workflow_id=None, data={}))\n"
        "anyio.run(main)\n"
    )
    command = [sys.executable, "-c", code, str(project_on_database.root)]
    processes = [await to_thread.run_sync(lambda: subprocess.Popen(command)) for _ in range(4)]
    assert [await to_thread.run_sync(process.wait) for process in processes] == [0, 0, 0, 0]
    async with open_context("acme", project_on_database.root) as context:
        assert len(await (await deepwork_sql.database(context)).feed(None)) == 4
