"""`deepwork connect`: clients' files, as a person who has files of their own would see it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork.builtin.clients.table import CLIENTS

PROGRAM = str(Path(sys.executable).parent / "deepwork")


@pytest.fixture
def connect(run, home):
    """Connect without starting the server, which one test does for all."""

    def connect(*arguments, code=0, verify=False):
        ended = run("connect", *arguments, *([] if verify or "--remove" in arguments else ["--no-verify"]))
        assert ended.returncode == code, ended
        return ended

    return connect


def files(*roots):
    return {path: path.read_bytes() for root in roots for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_gets_its_entry_and_the_second_run_changes_nothing(connect, project, home, name):
    connect(name)
    client = CLIENTS[name]
    file = project.root / client.project_files[0] if client.project_files else client.user_files(os.environ)[0]
    data = client.syntax.data(file.read_text())
    for key in client.keys_of_entry:
        data = data[key]
    folder = client.folder or str(project.root)
    assert client.command_of(data) == [PROGRAM, "serve", "--path", folder]
    before = files(project.root, home)
    assert connect(name).stdout.startswith("unchanged  ")
    assert files(project.root, home) == before


@pytest.mark.parametrize("name", CLIENTS)
def test_what_connect_has_made_is_gone_after_remove(connect, project, home, name):
    before = files(project.root, home)
    connect(name)
    connect(name, "--remove")
    state = home / ".local" / "state"
    assert {path for path in files(project.root, home) if not path.is_relative_to(state)} == set(before)
    folders = {".claude", ".codex", ".gemini", ".cursor", ".vscode", ".zed"}
    assert [path for path in [*project.root.iterdir(), *home.iterdir()] if path.name in folders] == []


def test_the_server_of_an_entry_is_started_and_its_tools_are_listed(connect):
    assert re.search(
        r"^verified   the server lists \d+ tools of every installed set, about [\d,]+ tokens, ",
        connect("claude", verify=True).stdout,
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("claude", ".mcp.json", '{"mcpServers":{"a":{"command":"x"}},"z":1.50}'),
        ("vscode", ".vscode/mcp.json", '// mine\n{\n\t"servers": {\n\t\t"a": {}, // first\n\t},\n}\n'),
        ("codex", ".codex/config.toml", '\ufeffmodel = "o" # m\r\n[mcp_servers.a]\r\nenv.A = "1"\r\nenv.B = "2"\r\n'),
        ("gemini", ".gemini/settings.json", '{\n  "hooks": {"AfterAgent": [{"hooks": []}]} /* h */\n}\n'),
    ],
)
def test_remove_brings_back_the_bytes_of_a_file_that_nobody_has_changed_since(connect, project, client, name, text):
    project.write(name, text)
    file = project.root / name
    file.write_bytes(text.encode())
    connect(client)
    assert file.read_bytes() != text.encode()
    connect(client, "--remove")
    assert file.read_bytes() == text.encode()


def test_remove_takes_out_our_entry_alone_where_the_file_has_changed_since(connect, project):
    connect("claude")
    file = project.root / ".mcp.json"
    data = json.loads(file.read_text())
    data["mcpServers"]["other"] = {"command": "x"}
    file.write_text(json.dumps(data))
    connect("claude", "--remove")
    assert json.loads(file.read_text()) == {"mcpServers": {"other": {"command": "x"}}}


def test_hooks_go_beside_those_of_the_user_and_out_again(connect, project):
    mine = {"hooks": [{"type": "command", "command": "say done"}]}
    project.write(".claude/settings.local.json", json.dumps({"hooks": {"Stop": [mine]}, "permissions": {}}))
    file = project.root / ".claude/settings.local.json"
    connect("claude")
    hooks = json.loads(file.read_text())["hooks"]
    events = [
        "SessionStart",
        "UserPromptSubmit",
        "PreCompact",
        "PostToolUse",
        "PostToolUseFailure",
        "StopFailure",
    ]
    assert [*hooks] == ["Stop", *events, "SessionEnd"]
    assert hooks["Stop"][0] == mine
    assert hooks["Stop"][1]["hooks"][0]["command"] == f"{PROGRAM} hook Stop --client claude"
    assert "unchanged  .claude/settings.local.json" in connect("claude").stdout
    file.write_text(file.read_text().replace("say done", "say so"))
    connect("claude", "--remove")
    settings = json.loads(file.read_text())
    assert settings == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say so"}]}]}, "permissions": {}}


@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if client.hooks])
def test_hooks_come_with_the_entry_unless_they_are_declined(connect, project, name):
    connect(name, "--no-hooks")
    file = project.root / CLIENTS[name].hooks.project_file
    assert not file.exists() or "hooks" not in json.loads(file.read_text())
    connect(name)
    assert [*json.loads(file.read_text())["hooks"]] == [*CLIENTS[name].hooks.events]
    before = file.read_bytes()
    connect(name, "--no-hooks")
    connect(name, "--hooks")
    assert file.read_bytes() == before


@pytest.fixture
def client_of_version(tmp_path, monkeypatch):
    """Put a program of a client into PATH that says that it has this version."""

    def client_of_version(name, version):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\necho '{version} (Some Code)'\n")
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return client_of_version


def forms(file):
    """Whether each hook of ours runs a command or calls a tool, by event."""
    return {event: groups[-1]["hooks"][0]["type"] for event, groups in json.loads(file.read_text())["hooks"].items()}


@pytest.mark.parametrize(
    ("name", "old", "new"), [("claude", "2.1.117", "2.1.118"), ("codex", "codex-cli 0.168.9", "codex-cli 0.169.0")]
)
def test_hooks_call_a_tool_where_the_version_in_path_can_and_run_a_command_elsewhere(
    connect, project, home, client_of_version, name, old, new
):
    file = project.root / CLIENTS[name].hooks.project_file
    client_of_version(name, old)
    connect(name)
    assert {*forms(file).values()} == {"command"}
    client_of_version(name, new)
    assert f"connected  {CLIENTS[name].hooks.project_file}" in connect(name).stdout
    commands = {event for event, form in forms(file).items() if form == "command"}
    assert commands == ({"SessionStart", "SessionEnd"} if name == "claude" else set())
    assert len(json.loads(file.read_text())["hooks"]["Stop"]) == 1  # the command was replaced
    before = file.read_bytes()
    assert "connected" not in connect(name).stdout
    assert file.read_bytes() == before
    connect(name, "--remove")
    assert not file.exists()


def test_a_hook_with_a_tool_waits_for_nobody_and_names_the_server(connect, project, client_of_version):
    client_of_version("claude", "2.1.327")
    project.write(".claude/settings.local.json", json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "prompt"}]}]}}))
    connect("claude")
    hooks = json.loads((project.root / ".claude/settings.local.json").read_text())["hooks"]
    assert hooks["Stop"][0] == {"hooks": [{"type": "prompt"}]}
    [hook] = hooks["Stop"][1]["hooks"]
    assert {key: hook[key] for key in ("type", "server", "tool", "timeout", "onFailure")} == {
        "type": "mcp_tool",
        "server": "deepwork",
        "tool": "hook",
        "timeout": 2,
        "onFailure": "continue",
    }


def test_a_program_that_says_no_version_gets_commands(connect, project, client_of_version):
    client_of_version("claude", "nothing")
    connect("claude")
    assert {*forms(project.root / ".claude/settings.local.json").values()} == {"command"}


def test_hooks_are_refused_for_a_client_that_has_none(connect):
    assert "Zed has no hooks that deepwork knows" in connect("zed", "--hooks", code=1).stderr


def test_hooks_of_the_user_name_the_project(connect, project, home):
    connect("claude", "--scope", "user")
    command = json.loads((home / ".claude/settings.json").read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert command == f"{PROGRAM} hook Stop --client claude --path {project.root}"


@pytest.mark.parametrize("text", ["{ not json", '{"mcpServers": []}', '{"mcpServers": {} // no\n}'])
def test_a_file_that_cannot_be_parsed_is_refused_and_stays(connect, project, home, text):
    project.write(".mcp.json", text)
    ended = connect("claude", code=1)
    assert re.match(r"Error: \.mcp\.json: line 1, column \d+: ", ended.stderr)
    assert "deepwork connect print" in ended.stderr
    assert files(project.root, home) == {project.root / ".mcp.json": text.encode()}


def test_a_link_out_of_the_project_is_refused(connect, project, tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    (project.root / ".mcp.json").symlink_to(outside)
    ended = connect("claude", code=1)
    assert "Error: .mcp.json lies outside of the project: it is a link" in ended.stderr
    assert outside.read_text() == "{}"


def test_a_users_file_that_is_a_link_stays_one(connect, home):
    real = home / "dotfiles.json"
    real.write_text('{"a": 1}')
    real.chmod(0o640)
    (home / ".claude.json").symlink_to(real)
    connect("claude", "--scope", "user")
    assert (home / ".claude.json").is_symlink()
    assert json.loads(real.read_text())["mcpServers"]["deepwork"]["args"][-1] != "."
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_backup_lies_in_the_users_state_folder(connect, project, home):
    project.write(".mcp.json", '{"mine": 1}')
    connect("claude")
    assert [path.read_text() for path in (home / ".local/state").rglob("*-.mcp.json")] == ['{"mine": 1}']
    assert [path for path in files(project.root) if "backup" in str(path.relative_to(project.root))] == []


def test_a_dry_run_shows_the_difference_and_writes_nothing(connect, project, home):
    before = files(project.root, home)
    assert f'+      "command": "{PROGRAM}",' in connect("claude", "--dry-run").stdout
    assert files(project.root, home) == before


def test_a_passing_environment_is_refused_and_a_lasting_installation_named(run, home, monkeypatch):
    cache = Path(sys.prefix).resolve().parent
    ended = run("connect", "claude", UV_CACHE_DIR=str(cache))
    assert ended.returncode == 1
    assert "runs from" in ended.stderr
    assert "uv tool install" in ended.stderr


def test_a_tracked_file_is_pointed_out(connect, project):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(project.root)]
    project.write(".mcp.json", "{}")
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", ".mcp.json"], check=True)
    assert f"Note: git tracks .mcp.json, but the path in it is this machine's: {PROGRAM}" in (
        printed := connect("claude").stderr
    )
    assert "`git rm --cached .mcp.json` and a line in .gitignore keep it out of commits." in printed


def test_the_list_says_which_clients_are_found_connected_and_broken(connect, project, run, home):
    connect("claude")
    project.write(".cursor/mcp.json", '{"mcpServers": {"deepwork": {"command": "/none/deepwork"}}}')
    project.write(".vscode/mcp.json", "{")
    (home / ".codeium/windsurf").mkdir(parents=True)
    words = dict(line.split()[:2] for line in run("connect", PATH="/nowhere").stdout.splitlines())
    assert (words["claude"], words["cursor"], words["vscode"]) == ("connected", "broken", "broken")
    assert (words["windsurf"], words["codex"]) == ("found", "-")


def test_print_gives_the_entry_with_full_paths(run, project, home):
    entry = json.loads(run("connect", "print").stdout)["mcpServers"]["deepwork"]
    assert entry == {"command": PROGRAM, "args": ["serve", "--path", str(project.root)]}


def test_init_connects_a_client_too(run, project, home):
    ended = run("init", "--client", "claude")
    assert (ended.returncode, "connected  .mcp.json" in ended.stdout) == (0, True)
    refused = run("init", "--client", "claud")
    assert refused.stderr == "Error: no client 'claud'; did you mean 'claude'?\n"


def test_doctor_starts_the_server_of_every_entry_of_ours(run, connect, project):
    connect("claude")
    printed = run("doctor").stdout
    assert re.search(r"✓ Claude Code: .*: \d+ tools after", printed)


@pytest.mark.parametrize(
    ("name", "version", "who"),
    [("claude", "2.1.118", {"session", "agent"}), ("codex", "0.169.0", {"session", "transcript"})],
)
def test_each_hook_that_calls_a_tool_hands_over_which_agent_it_is_about(
    connect, project, client_of_version, name, version, who
):
    client_of_version(name, version)
    connect(name)
    file = project.root / CLIENTS[name].hooks.project_file
    hooks = [groups[0]["hooks"][0] for groups in json.loads(file.read_text())["hooks"].values()]
    inputs = [hook["input"] for hook in hooks if hook["type"] == "mcp_tool"]
    assert len(inputs) > 4
    assert [given for given in inputs if not who <= {*given}] == []


def test_doctor_names_the_form_of_hooks_tries_it_and_warns_where_it_cannot_work(
    run, connect, project, client_of_version
):
    client_of_version("claude", "2.1.118")
    connect("claude")
    printed = run("doctor").stdout
    assert "✓ Claude Code: the hooks in .claude/settings.local.json call a tool" in printed
    assert "and it answers hooks" in printed
    client_of_version("claude", "2.1.117")
    printed = run("doctor").stdout
    assert "call a tool, and no version in PATH can, from 2.1.118 on" in printed
    connect("claude")
    client_of_version("claude", "2.1.118")
    assert "run a command; they can call a tool" in run("doctor").stdout
    connect("claude")
    (project.root / ".mcp.json").unlink()
    assert "call a server that has no entry" in run("doctor").stdout


def test_doctor_warns_of_a_server_that_answers_no_hooks_which_call_it(run, connect, home, client_of_version):
    client_of_version("claude", "2.1.118")
    connect("claude", "--scope", "user")
    file = home / ".claude.json"
    settings = json.loads(file.read_text())
    settings["mcpServers"]["deepwork"]["args"] += ["--no-plugin", "clients"]
    file.write_text(json.dumps(settings))
    printed = run("doctor").stdout
    assert re.search(r"! Claude Code: .*, but it answers no hooks, which call it", printed)
    assert "deepwork connect claude --scope user --replace" in printed
    connect("claude", "--scope", "user", "--replace")
    assert "and it answers hooks" in run("doctor").stdout


def test_doctor_looks_at_clients_although_a_file_of_hooks_cannot_be_read(run, connect, project):
    project.write(".claude/settings.local.json", '{"model": "opus",}')
    connect("cursor")
    printed = run("doctor").stdout
    assert "failed" not in printed.partition("\nclients\n")[2]
    assert " Cursor: .cursor/mcp.json: " in printed


@pytest.mark.parametrize("version", ["2.1.118", "2.1.117"])
def test_doctor_names_hooks_that_an_earlier_release_has_written(run, connect, project, client_of_version, version):
    client_of_version("claude", version)
    connect("claude")
    file = project.root / ".claude" / "settings.local.json"
    settings = json.loads(file.read_text())
    del settings["hooks"]["SessionEnd"]
    file.write_text(json.dumps(settings))
    printed = run("doctor").stdout
    assert "! Claude Code: the hooks in .claude/settings.local.json are not as this release writes them" in printed
    assert "deepwork connect claude" in printed.partition("not as this release")[2]
    connect("claude")
    assert "✓ Claude Code: the hooks in .claude/settings.local.json" in run("doctor").stdout


def test_doctor_starts_no_other_program_that_a_repository_names(run, project):
    entry = {"command": "/bin/sh", "args": ["-c", f"touch {project.root}/started; deepwork serve"]}
    project.write(".mcp.json", json.dumps({"mcpServers": {"deepwork": entry}}))
    printed = run("doctor").stdout
    assert "· Claude Code: .mcp.json: /bin/sh -c" in printed
    assert "not tried" in printed
    assert not (project.root / "started").exists()


def test_a_pipe_in_the_place_of_a_file_does_not_hang(connect, project):
    os.mkfifo(project.root / ".mcp.json")
    assert "not a regular file" in connect("claude", code=1).stderr


def test_the_plugin_has_the_same_entry_and_hooks_as_connect_writes(connect, project, home, tmp_path, run):
    folder = tmp_path / "plugin"
    connect("claude")
    assert connect("claude", "--plugin", folder).stdout == f"written    {folder}\n"
    entry = json.loads((project.root / ".mcp.json").read_text())
    hooks = json.loads((project.root / ".claude/settings.local.json").read_text())
    assert json.loads((folder / "deepwork/.mcp.json").read_text()) == entry
    assert json.loads((folder / "deepwork/hooks/hooks.json").read_text()) == hooks
    connect("claude", "--plugin", folder)
    (folder / "mine.txt").write_text("mine")
    assert "is not an empty folder" in connect("claude", "--plugin", folder, code=1).stderr


def test_doctor_says_when_an_installed_plugin_starts_another_command(connect, home, run):
    file = home / ".claude/plugins/cache/deepwork/deepwork/1.0/.mcp.json"
    file.parent.mkdir(parents=True)
    entry = {"type": "stdio", "command": PROGRAM, "args": ["serve", "--path", "."]}
    file.write_text(json.dumps({"mcpServers": {"deepwork": entry}}))
    assert "starts the same command" in run("doctor").stdout
    file.write_text(json.dumps({"mcpServers": {"deepwork": {**entry, "command": "/old/deepwork"}}}))
    assert "starts another command than `deepwork connect claude`" in run("doctor").stdout


@pytest.mark.parametrize(
    ("arguments", "expected", "unexpected"),
    [
        (("claude",), ["asks for your approval"], []),
        (("claude", "--scope", "user"), [], ["asks for your approval"]),
        (("codex",), ["trusted the project", "looked at them"], []),
        (("codex", "--scope", "user"), ["looked at them"], ["trusted the project"]),
        (("codex", "--no-hooks"), ["trusted the project"], ["looked at them"]),
    ],
)
def test_what_a_client_still_asks_of_its_user_is_said_where_it_asks(run, home, arguments, expected, unexpected):
    stderr = run("connect", *arguments, "--no-verify", HOME=str(home)).stderr
    assert [words for words in expected if words not in stderr] == []
    assert [words for words in unexpected if words in stderr] == []


def test_doctor_tells_a_plugin_that_brings_its_own_deepwork_and_warns_of_an_entry_beside_it(connect, home, run):
    file = home / ".claude/plugins/cache/deepwork/deepwork/1.0/.mcp.json"
    file.parent.mkdir(parents=True)
    entry = {"command": "${CLAUDE_PLUGIN_ROOT}/bin/deepwork", "args": ["serve", "--path", "."]}
    file.write_text(json.dumps({"mcpServers": {"deepwork": entry}}))
    assert "brings its own deepwork" in run("doctor").stdout
    connect("claude", "--no-verify")
    assert "has the plugin in" in (report := run("doctor").stdout)
    assert "every tool twice" in report


def test_a_file_that_cannot_be_backed_up_is_not_changed_and_the_place_of_the_backup_is_named(connect, project, home):
    home.joinpath(".local").write_text("")
    project.write(".mcp.json", "{}")
    stderr = connect("claude", code=1).stderr
    assert f"Error: .mcp.json was not changed, because it cannot be backed up: {home}/.local" in stderr
    assert (project.root / ".mcp.json").read_text() == "{}"
