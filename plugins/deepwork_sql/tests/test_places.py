"""Which database a project uses: the file of its repository, or a URL that its user trusts."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import deepwork_sql
from deepwork.api import ConfigError, PathRefused, open_context
from deepwork_sql.address import address_of, choose_address
from deepwork_sql.settings import without_password

pytestmark = pytest.mark.anyio

SECRET = "hunter2"
URL = f"postgresql://ada:{SECRET}@127.0.0.1:1/work?sslmode=require"


def git(folder, *arguments):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def shown(root):
    return choose_address(open_context("sql", root)).shown


def file_of(root):
    return f"sqlite:///{root}/.deepwork/data/deepwork.db"


@pytest.fixture
def run(project):
    """Run `deepwork` in the project."""

    def run(*arguments, **environment):
        command = [sys.executable, "-m", "deepwork", *arguments]
        env = {**os.environ, **environment}
        return subprocess.run(command, cwd=project.root, capture_output=True, text=True, env=env, timeout=240)

    return run


@pytest.fixture
def repository(tmp_path):
    """A repository with a linked working tree beside it."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    return main, linked


def test_a_folder_without_git_keeps_its_own_file(project):
    assert shown(project.root) == file_of(project.root)


def test_all_working_trees_of_a_repository_share_the_file_of_the_main_one(repository):
    main, linked = repository
    assert shown(main) == shown(linked) == file_of(main)


def test_a_working_tree_may_keep_its_own_file(repository):
    _, linked = repository
    (linked / ".deepwork").mkdir()
    (linked / ".deepwork" / "config.yml").write_text("plugins: {settings: {sql: {scope: worktree}}}\n")
    assert shown(linked) == file_of(linked)


def test_a_folder_in_a_working_tree_keeps_its_own_file(repository):
    _, linked = repository
    (linked / "part").mkdir()
    assert shown(linked / "part") == file_of(linked / "part")


def test_a_git_file_that_the_main_repository_does_not_know_is_not_believed(repository, tmp_path):
    """Else a folder could have its sessions written into any repository."""
    _, linked = repository
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".git").write_text((linked / ".git").read_text())
    assert shown(copy) == file_of(copy)


def test_a_git_folder_that_pretends_to_be_of_a_repository_is_not_believed(repository, tmp_path):
    main, _ = repository
    liar = tmp_path / "liar"
    (liar / "git").mkdir(parents=True)
    (liar / ".git").write_text("gitdir: git\n")
    (liar / "git" / "commondir").write_text(f"{main}/.git\n")
    (liar / "git" / "gitdir").write_text(f"{liar}/.git\n")
    assert shown(liar) == file_of(liar)


def test_a_working_tree_of_a_bare_repository_keeps_its_own_file(tmp_path):
    bare, linked = tmp_path / "all" / ".git", tmp_path / "linked"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare")
    tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the empty one, which every repository knows
    git(bare, "update-ref", "HEAD", commit(bare, tree))
    git(bare, "worktree", "add", "-q", "--detach", str(linked))
    assert shown(linked) == file_of(linked)


def commit(bare, tree):
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "commit-tree", tree, "-m", "x"]
    subprocess.run(["git", "mktree"], cwd=bare, check=True, input=b"", capture_output=True)
    return subprocess.run(command, cwd=bare, check=True, capture_output=True, text=True).stdout.strip()


async def test_the_file_is_private_and_keeps_itself_out_of_git(project):
    async with open_context("acme", project.root) as context:
        await deepwork_sql.database(context)
        folder = project.root / ".deepwork" / "data"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert (folder / ".gitignore").read_text() == "*\n"
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.glob("deepwork.db*")}
        assert modes == dict.fromkeys(["deepwork.db", "deepwork.db-wal", "deepwork.db-shm"], 0o600)


@pytest.mark.parametrize("place", [".deepwork/data", ".deepwork/data/deepwork.db"])
async def test_a_link_is_refused(project, tmp_path, place):
    target = tmp_path / "elsewhere"
    if place.endswith(".db"):
        target.write_bytes(b"")
    else:
        target.mkdir()
    link = project.root / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    async with open_context("acme", project.root) as context:
        with pytest.raises(PathRefused):
            await deepwork_sql.database(context)
    assert not any(target.iterdir()) if target.is_dir() else target.read_bytes() == b""


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
        (URL, "postgresql://ada@127.0.0.1:1/work?sslmode=require"),
        ("postgresql://:x@/work", "postgresql://@/work"),
        ("postgresql://h/d?password=x&sslpassword=y&user=u", "postgresql://h/d?user=u"),
        ("postgresql://a:p%40@[::1]/d", "postgresql://a@[::1]/d"),
        ("postgresql://a:p@ss@h/d", "postgresql://a@h/d"),
        ("sqlite:////a b.db", "sqlite:////a b.db"),
        ("postgresql:///work", "postgresql:///work"),
        ("postgresql://ada:p/w@h/d", "postgresql://…"),
        ("postgresql://h:5432/d?options=a@b", "postgresql://h:5432/d?options=a@b"),
    ],
)
def test_a_url_is_shown_without_its_password(url, expected):
    assert without_password(url) == expected


def test_a_url_of_the_environment_wins(project, monkeypatch):
    project.write(".deepwork/config.yml", f"plugins: {{settings: {{sql: {{database_url: '{URL}'}}}}}}\n")
    monkeypatch.setenv("DEEPWORK_DATABASE_URL", "sqlite:////somewhere/a.db")
    assert shown(project.root) == "sqlite:////somewhere/a.db"


def test_a_url_of_the_user_needs_no_trust(project, monkeypatch, tmp_path):
    config = tmp_path / "config" / "deepwork" / "config.yml"
    config.parent.mkdir(parents=True)
    config.write_text(f"plugins: {{settings: {{sql: {{database_url: '{URL}'}}}}}}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert shown(project.root) == without_password(URL)


def test_a_url_of_the_project_is_an_error_until_it_is_trusted_and_its_password_is_shown_nowhere(project, run, tmp_path):
    project.write(".deepwork/config.yml", f"plugins: {{settings: {{sql: {{database_url: '{URL}'}}}}}}\n")
    results = [run("store", "info")]
    assert results[0].returncode == 1
    assert "deepwork trust" in results[0].stderr
    assert not (project.root / ".deepwork" / "data").exists(), "another database was used instead"
    results.append(run("trust", "--yes"))
    assert without_password(URL) in results[-1].stdout
    results += [run("store", "check"), run("doctor")]
    assert results[2].returncode == 1
    assert "The database failed" in results[2].stderr
    assert "has a password" in results[3].stdout
    assert SECRET not in "".join(result.stdout + result.stderr for result in results)
    kept = [file for file in (*tmp_path.rglob("*"), *Path(os.environ["HOME"]).rglob("*")) if file.is_file()]
    assert not [file for file in kept if SECRET.encode() in file.read_bytes() and file.name != "config.yml"]


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
