"""A valid database that a repository brings, and files that SQLite would play back into the user's own."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from deepwork.testing import Refused
from deepwork.testing.project import DeepworkProject

pytestmark = pytest.mark.anyio

START = {"goal": "g", "job_name": "demo", "workflow_name": "main"}
FORGED = "FORGED WORDS"
ENDLESS = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n)"

# What somebody writes into a database that he has made with this very program.
PLANTS = {
    "sessions": f"UPDATE deepwork_sessions SET summary = replace(summary, '\"g\"', '\"{FORGED}\"')",
    "a shape that is none": "UPDATE deepwork_sessions SET schema_version = 'x', revision = x'ff', updated_at = 7",
    "a release that is none": "UPDATE deepwork_schemas SET oldest_release = 'x y z'",
    "text that is none": "UPDATE deepwork_sessions SET summary = CAST(x'ff80' AS TEXT), document = CAST(x'ff' AS TEXT)",
    "a row of 200 MB": "UPDATE deepwork_sessions SET document = zeroblob(200000000)",
    "a trigger without end": f"CREATE TRIGGER t BEFORE INSERT ON deepwork_sessions BEGIN SELECT {ENDLESS}; END",
    "a trigger that forges": "CREATE TRIGGER t AFTER INSERT ON deepwork_sessions BEGIN "
    "UPDATE deepwork_sessions SET status = 'completed'; END",
    "a view without end": "ALTER TABLE deepwork_sessions RENAME TO s; CREATE VIEW deepwork_sessions AS "
    f"SELECT s.* FROM s WHERE {ENDLESS} > 0",
}


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Make the database of a project as somebody else would, who has a state folder of their own."""

    async def other(folder):
        folder.mkdir()
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("HOME", str(tmp_path / "home of another"))
            elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "state of another"))
            await work(DeepworkProject(folder))
        return folder / ".deepwork" / "data" / "deepwork.db"

    return other


async def work(project):
    project.write_job()
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    async with project.agent() as agent:
        return await agent.call("start_workflow", **START)


async def refusals(project):
    """What calls are refused with."""
    texts = []
    try:
        async with project.agent() as agent:
            for tool, arguments in (
                ("get_workflows", {}),
                ("start_workflow", START),
                ("finished_step", {"outputs": {"a.md": "a.md"}}),
            ):
                try:
                    texts.append(str(await agent.call(tool, **arguments)))
                except Refused as error:
                    texts.append(str(error))
    except Refused as error:
        texts.append(str(error))
    return texts


def place(project):
    data = project.root / ".deepwork" / "data"
    data.mkdir(parents=True, exist_ok=True)
    return data / "deepwork.db"


def deepwork(project, *arguments):
    command = [sys.executable, "-m", "deepwork", *arguments, "--path", str(project.root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def git(project, *arguments):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    subprocess.run(command, cwd=project.root, check=True, capture_output=True)


@pytest.mark.parametrize("plant", PLANTS)
async def test_a_valid_database_that_a_repository_brings_is_not_even_opened(project, other, tmp_path, plant):
    planted = await other(tmp_path / "other")
    with closing(sqlite3.connect(planted)) as connection:
        connection.executescript(f"UPDATE deepwork_sessions SET project = '{project.root}'; {PLANTS[plant]};")
    project.write_job()
    project.write("a.md")
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    shutil.copy(planted, place(project))
    before = place(project).read_bytes()
    said = await refusals(project)
    assert [text for text in said if "was not made by you" in text]
    assert not [text for text in said if "internal error" in text or FORGED in text]
    assert place(project).read_bytes() == before
    assert not place(project).with_name("deepwork.db-wal").exists()


@pytest.mark.parametrize("first", ["the shell", "the client"])
def test_a_shell_with_a_state_folder_shares_the_database_with_servers_of_clients_that_pass_no_such_variable(
    project, monkeypatch, first
):
    folder = os.environ["XDG_STATE_HOME"]
    for program in sorted(["the shell", "the client"], key=lambda program: program != first):
        if program == "the shell":
            monkeypatch.setenv("XDG_STATE_HOME", folder)
        else:
            monkeypatch.delenv("XDG_STATE_HOME")
        done = deepwork(project, "store", "migrate")
        assert done.returncode == 0, done.stderr


async def test_doctor_says_so_too(project, other, tmp_path):
    shutil.copy(await other(tmp_path / "other"), place(project))
    assert "was not made by you" in deepwork(project, "doctor").stdout


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
async def test_what_sqlite_would_play_back_is_not_brought_for_a_database_that_is_yet_to_be_made(project, ending):
    """A journal may name a further file, which SQLite removes when it has played it back."""
    place(project).with_name(f"deepwork.db{ending}").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(504))
    project.write_job()
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    said = await refusals(project)
    assert any(f"deepwork.db{ending} without the database" in text for text in said)
    assert not place(project).exists()


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
async def test_what_git_brings_beside_the_users_own_database_is_not_played_back(project, ending):
    git(project, "init", "-q")
    await work(project)
    beside = place(project).with_name(f"deepwork.db{ending}")
    beside.write_bytes(b"what a pull brings")
    git(project, "add", "-f", str(beside))
    said = await refusals(project)
    assert any("git tracks" in text and ending in text for text in said)
    assert beside.read_bytes() == b"what a pull brings"


async def test_a_write_ahead_log_of_a_server_that_was_killed_is_played_back(project):
    git(project, "init", "-q")
    session = (await work(project))["begin_step"]["session_id"]
    database = place(project)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE deepwork_sessions SET damaged = 0")
        connection.commit()
        copies = {name: database.with_name(name).read_bytes() for name in ("deepwork.db", "deepwork.db-wal")}
    for name, content in copies.items():
        database.with_name(name).write_bytes(content)
    assert any(session in text for text in await refusals(project))


async def test_a_database_is_its_users_wherever_it_is_moved_and_restored(project, tmp_path):
    await work(project)
    moved = DeepworkProject(tmp_path / "moved")
    shutil.copytree(project.root, moved.root)
    assert not [text for text in await refusals(moved) if "was not made by you" in text]
    with closing(sqlite3.connect(place(project))) as connection, closing(sqlite3.connect(tmp_path / "copy")) as copy:
        connection.backup(copy)
    shutil.copy(tmp_path / "copy", place(project))
    assert not [text for text in await refusals(project) if "was not made by you" in text]


async def test_a_database_of_another_machine_is_adopted_by_its_user_but_never_one_that_git_tracks(
    project, other, tmp_path
):
    planted = await other(tmp_path / "other")
    project.write_job()
    project.write("a.md")
    project.write(".deepwork/config.yml", "state: {store: sql}\n")
    shutil.copy(planted, place(project))
    git(project, "init", "-q")
    git(project, "add", "-f", ".deepwork/data/deepwork.db")
    done = deepwork(project, "store", "adopt", "--yes")
    assert done.returncode == 1
    assert "git tracks .deepwork/data/deepwork.db" in done.stderr
    git(project, "rm", "-q", "--cached", ".deepwork/data/deepwork.db")
    assert "[y/N]" in deepwork(project, "store", "adopt").stderr  # and nobody says yes
    assert any("was not made by you" in text for text in await refusals(project))
    assert deepwork(project, "store", "adopt", "--yes").returncode == 0
    assert not [text for text in await refusals(project) if "was not made by you" in text]


async def test_a_database_without_a_number_gets_one_when_it_is_adopted(project):
    with closing(sqlite3.connect(place(project))) as connection:
        connection.execute("CREATE TABLE notes (text)")
    assert deepwork(project, "store", "adopt", "--yes").returncode == 0
    assert deepwork(project, "store", "info").returncode == 0


def test_what_is_no_database_cannot_be_adopted(project):
    for content in (None, b"nonsense" * 100):
        if content is not None:
            place(project).write_bytes(content)
        done = deepwork(project, "store", "adopt", "--yes")
        assert done.returncode == 1, content
        assert "Traceback" not in done.stderr
    os.remove(place(project))
    os.mkfifo(place(project))
    assert deepwork(project, "store", "adopt", "--yes").returncode == 1


def test_a_git_file_that_is_a_pipe_or_endless_makes_nobody_wait(project):
    for kind in ("pipe", "endless"):
        path = project.root / ".git"
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
        assert deepwork(project, "store", "info").returncode == 0
        path.unlink()
