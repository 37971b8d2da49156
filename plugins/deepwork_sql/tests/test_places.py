"""Which database a project uses: the file of its repository, or a URL that its user trusts."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import deepwork_sql
from deepwork.api import open_context
from deepwork.errors import ConfigError
from deepwork_sql.address import address_of, choose_address
from deepwork_sql.errors import DatabaseError
from deepwork_sql.places import place_of

pytestmark = pytest.mark.anyio

SECRET = "hunter2"
URL = f"postgresql://ada:{SECRET}@127.0.0.1:1/work?sslmode=require"


def shown(root):
    return choose_address(open_context("sql", root)).shown


def file_of(owner):
    """The file of a database that is named by a folder."""
    name = sha256(os.fsencode(owner)).hexdigest()[:24]
    return f"sqlite:///{os.environ['XDG_STATE_HOME']}/deepwork/databases/{name}/deepwork.db"


@pytest.fixture
def run(project):
    """Run `deepwork` in the project."""

    def run(*arguments, **environment):
        command = [sys.executable, "-m", "deepwork", *arguments]
        env = {**os.environ, **environment}
        return subprocess.run(command, cwd=project.root, capture_output=True, text=True, env=env, timeout=240)

    return run


async def test_the_file_is_private_and_nothing_is_made_in_the_project(project):
    async with open_context("acme", project.root) as context:
        await deepwork_sql.database(context)
        folder = Path(shown(project.root).removeprefix("sqlite:///")).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.glob("deepwork.db*")}
        assert modes == dict.fromkeys(["deepwork.db", "deepwork.db-wal", "deepwork.db-shm"], 0o600)
    assert list(project.root.iterdir()) == []


@pytest.mark.parametrize("first", ["the shell", "the client"])
async def test_a_shell_with_a_state_folder_shares_the_database_with_servers_of_clients_that_pass_no_such_variable(
    project, monkeypatch, first
):
    """Whoever of them makes it."""
    folder = os.environ["XDG_STATE_HOME"]
    files = set()
    for program in sorted(["the shell", "the client"], key=lambda program: program != first):
        if program == "the shell":
            monkeypatch.setenv("XDG_STATE_HOME", folder)
        else:
            monkeypatch.delenv("XDG_STATE_HOME")
        files.add(place_of(project.root, os.environ, scope="repository").prepare())
    assert len(files) == 1


async def test_a_state_folder_that_is_away_is_an_error_and_no_second_database_is_made(project, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "drive"))
    file = place_of(project.root, os.environ, scope="repository").prepare()
    (tmp_path / "drive").rename(tmp_path / "elsewhere")
    monkeypatch.delenv("XDG_STATE_HOME")
    with pytest.raises(DatabaseError, match="not there now") as error:
        place_of(project.root, os.environ, scope="repository").prepare()
    assert str(file.parent) in error.value.message
    assert "remove the link" in error.value.hint


CANNOT_BE_WRITTEN = "where your databases are kept, cannot be written: "


def test_a_state_folder_that_cannot_be_made_is_a_sentence_in_every_door(project, monkeypatch, deepwork):
    folder = Path("/proc/nowhere")  # a place where folders cannot be made
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    for arguments in (("store", "info"), ("doctor",)):
        result = deepwork(*arguments)
        assert result.code == 1
        assert CANNOT_BE_WRITTEN in result.out + result.err
        assert "DEEPWORK_DATABASE_URL" in result.out + result.err
        assert "Traceback" not in result.out + result.err


def test_a_state_folder_that_can_only_be_read_is_a_sentence(project, monkeypatch, tmp_path):
    folder = tmp_path / "home"
    (folder / "state" / "deepwork" / "databases").mkdir(parents=True)
    (folder / ".local" / "state" / "deepwork" / "databases").mkdir(parents=True)
    may = os.access  # root may write everywhere, so this stands for a disk that is mounted to be read
    monkeypatch.setattr(os, "access", lambda path, mode: not Path(path).is_relative_to(folder) and may(path, mode))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    with pytest.raises(DatabaseError, match=CANNOT_BE_WRITTEN) as error:
        place_of(project.root, os.environ, scope="repository").prepare()
    assert "DEEPWORK_DATABASE_URL" in str(error.value)


def test_a_state_folder_in_the_main_working_tree_is_refused(repository, monkeypatch):
    """Its repository could bring what is in it."""
    main, linked = repository
    monkeypatch.setenv("HOME", str(main))
    monkeypatch.setenv("XDG_STATE_HOME", str(main / "state"))
    with pytest.raises(ConfigError, match="whose repository could bring what is in it"):
        shown(linked)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://h/d",
        "sqlite:///a.db",
        "sqlite://",
        "sqlite:////a.db?mode=ro",
        "nonsense",
        "/a.db",
        "sqlite://host/a.db",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_with_one_that_can(url):
    with pytest.raises(ConfigError, match="not the URL of a database") as error:
        address_of(url, "the test", machine="m")
    assert "sqlite:////" in error.value.hint


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (URL, "postgresql://ada@127.0.0.1:1/work"),
        ("postgresql://:x@/work", "postgresql:///work"),
        ("postgres://a:p%40@[::1]/d", "postgres://a@[::1]/d"),
        ("postgresql:///work?host=/run/postgresql&user=u&port=7", "postgresql://u@%2Frun%2Fpostgresql:7/work"),
        ("postgresql://a%40b@h1,h2/d%20e?connect_timeout=3", "postgresql://a%40b@h1,h2/d%20e"),
        ("sqlite:////a b.db", "sqlite:////a b.db"),
        ("sqlite:////a%20b.db", "sqlite:////a b.db"),
    ],
)
def test_a_url_is_shown_by_its_user_host_port_and_database(url, expected):
    assert address_of(url, "the test", machine="m").shown == expected


def test_a_url_of_the_environment_wins(project, monkeypatch):
    project.write(".deepwork/config.yml", f"plugins: {{settings: {{sql: {{database_url: '{URL}'}}}}}}\n")
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", "sqlite:////somewhere/a.db")
    assert shown(project.root) == "sqlite:////somewhere/a.db"


def test_a_url_of_the_user_needs_no_trust(project, monkeypatch, tmp_path):
    config = tmp_path / "config" / "deepwork" / "config.yml"
    config.parent.mkdir(parents=True)
    config.write_text(f"plugins: {{settings: {{sql: {{database_url: '{URL}'}}}}}}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert shown(project.root) == "postgresql://ada@127.0.0.1:1/work"


def test_a_url_of_the_project_is_an_error_until_it_is_trusted_and_its_password_is_shown_nowhere(project, run, tmp_path):
    project.write(".deepwork/config.yml", f"plugins: {{settings: {{sql: {{database_url: '{URL}'}}}}}}\n")
    results = [run("store", "info")]
    assert results[0].returncode == 1
    assert "deepwork trust" in results[0].stderr
    assert not Path(file_of(project.root).removeprefix("sqlite:///")).exists(), "another database was used instead"
    results.append(run("trust", "--yes"))
    assert "postgresql://ada@127.0.0.1:1/work with sslmode (fingerprint " in results[-1].stdout
    results += [run("store", "check"), run("doctor")]
    assert results[2].returncode == 1
    assert "The database failed" in results[2].stderr
    assert "has a password" in results[3].stdout
    assert SECRET not in "".join(result.stdout + result.stderr for result in results)
    files = [file for file in (*tmp_path.rglob("*"), *Path(os.environ["HOME"]).rglob("*")) if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes() and file.name != "config.yml"]


async def test_a_password_is_not_in_the_errors_and_logs_of_a_server(project, monkeypatch, caplog):
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", f"postgresql://ada:{SECRET}@127.0.0.1:1/work")
    project.write_job()
    async with project.agent(state_store="sql") as agent:
        error = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
    assert "The database failed" in error
    assert SECRET not in error + caplog.text


def test_without_a_database_nothing_imports_sqlalchemy(project):
    code = (
        "import sys, deepwork_sql\n"
        "from deepwork.project.project import Project\n"
        f"project = Project({str(project.root)!r})\n"
        "project.state_stores.demand(), project.checks.demand(), project.http_apps(project.engine()).demand()\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('sqlalchemy', 'alembic', 'psycopg')])"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"
