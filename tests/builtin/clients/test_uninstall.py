"""`deepwork uninstall`: every file of a client is what it was, in all projects, and data go only if that is said."""

from __future__ import annotations

import json
import os

import pytest

from deepwork.builtin.clients.files import with_entry
from deepwork.builtin.clients.table import CLIENTS

OLD_KEYS = ("path", "after", "original", "is_original_known", "made_folders")


@pytest.fixture
def state(home):
    return home / ".local/state/deepwork"


@pytest.fixture
def connect(invoke, home):
    def connect(*arguments, **more):
        ended = invoke("connect", *arguments, "--no-verify", **more)
        assert ended.code == 0, ended

    return connect


@pytest.fixture
def files(project, home, second, state):
    """Read every file and folder but the state of deepwork."""

    def files():
        paths = [path for root in (project.root, home, second) for path in root.rglob("*")]
        paths = [path for path in paths if not state.is_relative_to(path) and not path.is_relative_to(state)]
        return {path: path.read_bytes() if path.is_file() else None for path in paths}

    return files


@pytest.mark.parametrize("release", ["of today", "of before"])
def test_every_file_of_every_client_in_all_projects_is_what_it_was(
    invoke, connect, project, home, second, state, files, release
):
    for name, client in CLIENTS.items():
        mine = {"type": "http", "url": f"https://{name}.example/mcp"} if release == "of today" else {"other": 1}
        keys = client.keys_of_entry if release == "of today" else (*client.keys, "other")
        file = client.user_files(os.environ)[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(with_entry("", client.syntax, keys, mine) + "\n")
    before = files()
    for name, client in CLIENTS.items():
        connect(name, "--scope", "user", "--replace")
        if client.project_files:
            connect(name)
            connect(name, cwd=second)
    if release == "of before":
        for record in state.rglob("record.json"):
            record.write_text(json.dumps({key: json.loads(record.read_text())[key] for key in OLD_KEYS}))
    dry = invoke("uninstall", "--dry-run")
    records = list(state.rglob("record.json"))
    assert (dry.code, f"\n{dry.out}".count("\n--- ")) == (0, len(records))
    assert invoke("uninstall").code == 0
    assert files() == before
    assert list(state.rglob("record.json")) == []
    assert invoke("uninstall").out.startswith("data  ")


def test_entries_that_projects_have_replaced_one_after_the_other_all_go(invoke, connect, home, second, files):
    before = files()
    connect("codex", "--scope", "user")
    connect("codex", "--scope", "user", "--replace", cwd=second)
    assert invoke("uninstall").code == 0
    assert files() == before


def test_a_project_that_is_gone_is_forgotten(invoke, connect, second, state):
    connect("claude", cwd=second)
    second.rename(second.with_name("gone"))
    assert invoke("uninstall").code == 0
    assert list(state.rglob("record.json")) == []


def test_a_file_that_cannot_be_read_is_named_the_others_are_done_and_the_backups_stay(
    invoke, connect, project, state, second
):
    connect("claude")
    connect("claude", cwd=second)
    (project.root / ".mcp.json").write_text("{")
    ended = invoke("uninstall", "--data")
    assert ended.code == 1
    assert f"not taken out of {project.root}/.mcp.json; your data were kept" in ended.err
    assert list(second.iterdir()) == []
    assert len(list(state.rglob("record.json"))) == 1


def test_data_are_listed_with_their_size_and_go_only_if_that_is_said(invoke, connect, project, state):
    project.write(".deepwork/config.yml", "# mine\n")
    connect("claude")
    (state / "client-sessions").mkdir()
    (state / "client-sessions/a.json").write_text("x" * 1234)
    ended = invoke("uninstall", "--dry-run", "--data")
    assert f"data       {state}: " in ended.out
    assert "1,234  client-sessions" in ended.out
    assert f"Your data stay; remove them with: rm -r {state}\n" in invoke("uninstall").err
    assert (state / "client-sessions/a.json").exists()
    assert f"removed    {state}" in invoke("uninstall", "--data").out
    assert not state.exists()
    assert [path.name for path in project.root.iterdir()] == [".deepwork"]


def test_without_data_nothing_stays_and_nothing_is_said_of_it(invoke, connect, home, state):
    connect("claude")
    assert state.exists()
    ended = invoke("uninstall")
    assert (ended.code, ended.err) == (0, "")
    assert not state.exists()


def test_an_entry_of_somebody_else_in_a_file_that_we_have_written_stays(invoke, connect, project):
    connect("claude", "--no-hooks")
    file = project.root / ".mcp.json"
    mine = {"mcpServers": {"deepwork": {"type": "http", "url": "https://mine.example/mcp"}}}
    file.write_text(json.dumps(mine))
    assert invoke("uninstall").code == 0
    assert json.loads(file.read_text()) == mine


def test_the_plugin_of_claude_is_named_with_the_command_that_removes_it(invoke, home):
    file = home / ".claude/plugins/cache/deepwork/deepwork/1.0/.mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    assert "claude plugin uninstall deepwork@deepwork" in invoke("uninstall").err
