"""`deepwork store adopt`: databases of repositories that were moved or copied, of other machines, and backups."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork.project.stores import open_store
from deepwork.testing import a_session
from deepwork_sql.places import place_of

pytestmark = pytest.mark.anyio


async def save(root, *names):
    async with open_store(root, "sql") as store:
        for name in names:
            await store.save(a_session(name), expected=None)


async def sessions(root):
    async with open_store(root, "sql") as store:
        return sorted(summary.session_id for summary in await store.find())


def file_of(root):
    return place_of(root, os.environ, scope="repository").file


async def test_a_repository_that_was_moved_gets_its_database_and_its_sessions_back(
    repository, tmp_path, deepwork, caplog
):
    main, _ = repository
    await save(main, "s1")
    moved = main.rename(tmp_path / "moved")
    hint = f"`deepwork store adopt --from {main}`"
    assert hint in deepwork("doctor", root=moved).out
    assert await sessions(moved) == []
    assert hint in caplog.text
    result = deepwork("store", "adopt", "--from", str(main), "--yes", root=moved)
    assert (result.code, await sessions(moved)) == (0, ["s1"])
    assert "is kept in" in result.err
    assert hint not in deepwork("doctor", root=moved).out


async def test_a_copy_of_a_repository_gets_a_copy_of_its_database_and_both_go_on_alone(repository, tmp_path, deepwork):
    main, _ = repository
    await save(main, "s1")
    copy = tmp_path / "copy"
    shutil.copytree(main, copy)
    assert deepwork("store", "adopt", "--from", str(main), "--yes", root=copy).code == 0
    await save(copy, "s2")
    assert (await sessions(main), await sessions(copy)) == (["s1"], ["s1", "s2"])


async def test_a_file_of_another_machine_is_adopted_by_its_user_and_stays_as_it_was(project, earlier, deepwork):
    planted = earlier(own=False)
    before = planted.read_bytes()
    result = deepwork("store", "adopt")  # without an answer
    assert (result.code, "[y/N]" in result.err) == (130, True)
    assert deepwork("store", "adopt", "--yes").code == 0
    async with open_context("acme", project.root) as context:
        assert len(await (await deepwork_sql.database(context)).feed(None)) == 2
    assert planted.read_bytes() == before


async def test_a_backup_is_adopted_and_what_was_used_until_now_is_kept(project, tmp_path, deepwork):
    await save(project.root, "s1")
    with (
        closing(sqlite3.connect(file_of(project.root))) as connection,
        closing(sqlite3.connect(tmp_path / "b")) as copy,
    ):
        connection.backup(copy)
    await save(project.root, "s2")
    assert deepwork("store", "adopt", "--from", str(tmp_path / "b"), "--yes").code == 0
    assert await sessions(project.root) == ["s1"]
    [former] = file_of(project.root).parent.glob("*.before-*")
    assert deepwork("store", "adopt", "--from", str(former), "--yes").code == 0
    assert await sessions(project.root) == ["s1", "s2"]


async def test_a_write_ahead_log_of_a_killed_server_is_kept_with_the_former_database_and_not_played_into_the_new(
    project, earlier, deepwork
):
    await save(project.root, "s1")
    file = file_of(project.root)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE deepwork_sessions SET session_id = 's2'")
        copies = {path: path.read_bytes() for path in file.parent.glob("deepwork.db*") if path.suffix != ".db-shm"}
    for path, content in copies.items():
        path.write_bytes(content)
    assert file.with_name("deepwork.db-wal") in copies
    earlier(own=False)
    assert deepwork("store", "adopt", "--yes").code == 0
    log = file.with_name("deepwork.db-wal")
    assert not (log.exists() and log.stat().st_size)
    assert await sessions(project.root) == []
    [former] = file.parent.glob("*.before-*")
    with closing(sqlite3.connect(former)) as connection:
        assert connection.execute("SELECT session_id FROM deepwork_sessions").fetchall() == [("s2",)]


async def test_a_database_that_is_in_use_is_not_replaced(project, earlier, deepwork):
    earlier(own=False)
    async with open_store(project.root, "sql") as store:
        await store.save(a_session("s1"), expected=None)
        result = deepwork("store", "adopt", "--yes")
        assert (result.code, "Stop all servers" in result.err) == (1, True)
        assert [summary.session_id for summary in await store.find()] == ["s1"]


@pytest.mark.parametrize("kind", ["nothing", "nonsense", "fifo", "link", "no such project", "itself", "a URL"])
async def test_what_cannot_be_adopted_is_refused_in_a_sentence_and_changes_nothing(
    project, earlier, deepwork, tmp_path, monkeypatch, kind
):
    await save(project.root, "s1")
    arguments = []
    path = project.root / ".deepwork" / "data" / "deepwork.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "nonsense":
        path.write_bytes(b"nonsense" * 100)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "no such project":
        arguments = ["--from", str(tmp_path / "nowhere")]
    elif kind == "itself":
        arguments = ["--from", str(project.root)]
    elif kind == "a URL":
        monkeypatch.setenv("DEEPWORK_DATABASE_URL", "sqlite:////somewhere/a.db")
    result = deepwork("store", "adopt", "--yes", *arguments)
    assert result.code == 1
    assert result.err.startswith("Error: ")
    monkeypatch.delenv("DEEPWORK_DATABASE_URL", raising=False)
    assert await sessions(project.root) == ["s1"]
