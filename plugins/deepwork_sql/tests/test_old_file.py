"""The database that an earlier release kept in the project is moved to the user's state folder, once and whole."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork_sql.address import choose_address
from deepwork_sql.errors import DatabaseError
from deepwork_sql.places import InProject, place_of

pytestmark = pytest.mark.anyio

KILLED_MOVES = Path(__file__).parent / "data" / "killed_moves.py"
EVENTS = ["session:started", "task:done"]
WRITE = (
    "INSERT INTO deepwork_events (xid, source, event, at, data) VALUES (0, 'acme', 'task:late', 0, '{}')",
    [*EVENTS, "task:late"],
)


async def events(root):
    async with open_context("acme", root) as context:
        database = await deepwork_sql.database(context)
        return [event.event for event in await database.feed(None)], database.url


def place(root):
    return place_of(root, os.environ, scope="repository")


def leave_write_ahead_log(path):
    """Leave the files of a process that was killed after it had written one event."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(WRITE[0])
        copies = {file: file.read_bytes() for file in path.parent.glob("deepwork.db*") if not file.name.endswith("shm")}
    for file, content in copies.items():
        file.write_bytes(content)


@contextmanager
def used_by_another_process(path, then="SELECT 1"):
    """Let another process write to a database and have it open, as a server of an earlier release has."""
    code = (
        f"import sqlite3, sys\nc = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
        f"c.execute({WRITE[0]!r})\nc.execute({then!r})\nprint('open', flush=True)\nsys.stdin.read()\nc.close()"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "open\n"
        yield
        process.communicate("")


async def test_the_first_use_moves_it_with_all_rows_and_leaves_a_text_that_says_where(project, earlier, caplog):
    old = earlier()
    rows, url = await events(project.root)
    file = place(project.root).file
    assert (rows, url) == (EVENTS, f"sqlite:///{file}")
    assert file.is_relative_to(os.environ["XDG_STATE_HOME"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert str(file) in old.read_text()
    assert sorted(path.name for path in old.parent.iterdir()) == [".gitignore", "deepwork.db"]
    assert [record.message for record in caplog.records if "was moved to" in record.message]
    caplog.clear()
    assert await events(project.root) == (EVENTS, url)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING], "it is said once"


async def test_a_linked_working_tree_moves_the_database_of_the_main_one(repository, earlier):
    main, linked = repository
    old = earlier(main)
    assert (await events(linked))[0] == EVENTS
    assert old.read_bytes().startswith(b"This was the database")


@pytest.mark.parametrize("with_log", [False, True])
def test_a_kill_at_any_moment_of_the_move_loses_nothing(project, earlier, tmp_path, with_log):
    old = earlier()
    if with_log:
        leave_write_ahead_log(old)
    command = [sys.executable, str(KILLED_MOVES), str(project.root), str(with_log), str(len(EVENTS) + with_log)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) >= 15, "it was killed at too few steps"


@pytest.mark.parametrize(
    ("where", "failure"),
    [
        ("deepwork_sql.places.copy_database", OSError(28, "No space left on device")),
        ("deepwork_sql.places.copy_database", sqlite3.OperationalError("database or disk is full")),
        ("deepwork_sql.old_file.OldFile.leave_note", PermissionError(13, "Permission denied")),
    ],
)
async def test_a_move_that_fails_is_told_in_a_sentence_and_the_next_start_moves_it(
    project, earlier, monkeypatch, where, failure
):
    def fail(*_arguments):
        raise failure

    old = earlier()
    with monkeypatch.context() as broken:
        broken.setattr(where, fail)
        with pytest.raises(DatabaseError) as error:
            await events(project.root)
    assert str(old) in error.value.message
    assert "nothing was changed" in error.value.message
    assert (await events(project.root))[0] == EVENTS


@pytest.mark.parametrize("then", ["SELECT 1", "PRAGMA wal_checkpoint(TRUNCATE)"])
async def test_it_is_used_where_it_is_while_another_process_has_it_open_and_moved_at_the_next_start(
    project, earlier, caplog, then
):
    old = earlier()
    with used_by_another_process(old, then):
        rows, url = await events(project.root)
        assert (rows, url) == (WRITE[1], f"sqlite:///{old}")
        assert [record.message for record in caplog.records if "is in use by another process" in record.message]
        assert deepwork_sql.has_database(open_context("acme", project.root))
    assert old.read_bytes().startswith(b"SQLite format 3")
    assert (await events(project.root))[0] == WRITE[1]
    assert old.read_bytes().startswith(b"This was the database")


def test_who_uses_it_where_it_is_keeps_all_others_from_moving_it(project, earlier):
    """Else rows that are written to the old file after it was copied would be lost."""
    old = earlier()
    with used_by_another_process(old):
        used = place(project.root).prepare()
    assert isinstance(used, InProject)
    code = (
        "import os, pathlib; from deepwork_sql.places import place_of\n"
        f"print(type(place_of(pathlib.Path({str(project.root)!r}), os.environ, scope='repository').prepare()).__name__)"
    )
    try:
        second_process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert second_process.stdout == "InProject\n"
    finally:
        used.close()
    third_process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert third_process.stdout == "PosixPath\n"


async def test_a_write_ahead_log_beside_it_is_played_back_only_when_its_user_says_so(project, earlier, deepwork):
    """A server that was killed leaves one; a repository could bring one for a file that is the user's own."""
    old = earlier()
    leave_write_ahead_log(old)
    before = {file.name: file.read_bytes() for file in old.parent.iterdir()}
    with pytest.raises(DatabaseError, match=r"deepwork\.db-wal lies beside it") as error:
        await events(project.root)
    assert "deepwork store adopt" in error.value.hint
    assert {file.name: file.read_bytes() for file in old.parent.iterdir()} == before
    assert "deepwork.db-wal lies beside it" in deepwork("doctor").out
    assert deepwork("store", "adopt", "--yes").code == 0
    assert (await events(project.root))[0] == WRITE[1]


async def test_what_a_repository_brings_is_neither_opened_nor_in_the_way_and_doctor_names_it(
    project, earlier, deepwork
):
    planted = earlier(own=False)
    leave_write_ahead_log(planted)
    before = {file.name: file.read_bytes() for file in planted.parent.iterdir()}
    assert (await events(project.root))[0] == []
    assert {file.name: file.read_bytes() for file in planted.parent.iterdir()} == before
    assert f"{planted} was not made by you" in deepwork("doctor").out


@pytest.mark.parametrize("ending", ["", "-wal", "-journal"])
async def test_what_a_checkout_of_git_brings_after_the_move_changes_nothing(project, earlier, ending):
    old = earlier()
    before = await events(project.root)
    old.with_name(f"deepwork.db{ending}").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))
    assert await events(project.root) == before
    shutil.rmtree(old.parent)  # as on a branch that does not have it
    assert await events(project.root) == before


async def test_a_second_one_that_was_restored_later_stays_and_is_named(project, earlier, deepwork, caplog):
    old = earlier()
    copy = old.read_bytes()
    first = await events(project.root)
    old.write_bytes(copy)
    assert await events(project.root) == first
    assert "is not used, because the database is" in caplog.text
    assert old.read_bytes() == copy
    assert "is not used, because the database is" in deepwork("doctor").out
    result = deepwork("store", "adopt", "--yes")
    assert (result.code, (await events(project.root))[0]) == (0, EVENTS)
    [former] = Path(first[1].removeprefix("sqlite:///")).parent.glob("*.before-*")
    assert str(former) in result.err
    assert old.read_bytes().startswith(b"This was the database")


async def test_a_working_tree_that_had_its_own_keeps_it_with_its_scope(repository, earlier):
    main, linked = repository
    earlier(main)
    old = earlier(linked)
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("DELETE FROM deepwork_events")
        connection.commit()
    assert (await events(linked))[0] == EVENTS
    (linked / ".deepwork" / "config.yml").write_text("plugins: {settings: {sql: {scope: worktree}}}\n")
    assert (await events(linked))[0] == []
    assert old.read_bytes().startswith(b"This was the database")
    assert (await events(main))[0] == EVENTS


async def test_both_copies_of_a_project_with_an_earlier_database_keep_their_rows(project, earlier, tmp_path):
    earlier()
    shutil.copytree(project.root, tmp_path / "copy")
    assert (await events(project.root))[0] == EVENTS
    assert (await events(tmp_path / "copy"))[0] == EVENTS


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", "link to the folder"])
def test_a_thing_that_is_no_file_is_not_the_earlier_database(project, earlier, tmp_path, kind):
    old = earlier()
    old.rename(tmp_path / "elsewhere.db")
    if kind == "fifo":
        os.mkfifo(old)
    elif kind == "folder":
        old.mkdir()
    elif kind == "link":
        old.symlink_to(tmp_path / "elsewhere.db")
    else:
        (tmp_path / "elsewhere.db").rename(old)
        old.parent.rename(project.root / "data")
        old.parent.symlink_to(project.root / "data")
    assert not place(project.root).old.is_own
    assert place(project.root).prepare() == choose_address(open_context("sql", project.root)).file
