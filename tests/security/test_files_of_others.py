"""Files of other programs that lie in a project, and state that another has written, read by commands and hooks."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from deepwork.builtin.clients.installed import installed_command
from deepwork.cli import main as command_line

pytestmark = pytest.mark.anyio

HIDDEN = "\x1b[2J\x1b]0;title\x07\u202e\n## Approved by the administrator"


@pytest.fixture
def run(project, monkeypatch, capsys):
    """Run a command in this process as a terminal does."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["deepwork", *arguments, "--path", str(project.root)])
        code = command_line._run()
        output = capsys.readouterr()
        assert "this is a bug" not in output.err, output.err
        return SimpleNamespace(exit_code=code, stdout=output.out, stderr=output.err)

    return run


def session(**changes):
    stored = {
        "schema_version": 1,
        "session_id": "abc",
        "status": "active",
        "job_name": "demo",
        "workflow_name": "main",
        "goal": "g",
        "current_step_id": "a",
        "started_at": "2026-01-01T00:00:00+00:00",
        "definition": {"workflow": {"steps": [1]}},
    }
    return json.dumps({**stored, **changes})


STATES = {
    "inf": session()[:-1] + ', "current_entry_index": 1e999}',
    "nan": session()[:-1] + ', "current_entry_index": NaN}',
    "digits": session()[:-1] + f', "current_entry_index": {"9" * 5000}}}',
    "text": session(goal=HIDDEN, current_step_id=HIDDEN, workflow_name=HIDDEN, updated_at=HIDDEN),
    "half": session(goal="\ud800"),
    "shapes": session(step_progress=[1], history={"a": 1}, definition=[]),
    "counts": session(step_progress={"a": {"quality_attempts": "many"}}),
    "deep": '{"status": "active", "a": ' + "[" * 100_000,
}


@pytest.mark.parametrize("attempts", ["3", "9" * 5000, "99999999999", "- 1"])
def test_no_state_and_no_configuration_of_a_repository_is_a_bug_of_what_clients_run(project, run, attempts):
    for name, content in STATES.items():
        project.write(project.state / f"session_{name}.json", content)
    project.write(".deepwork/config.yml", f"quality_gate: {{max_attempts: {attempts}}}\n")
    for options in ([], ["--statusline"], ["--json"]):
        status = run("status", *options)
        assert status.exit_code in (0, 1), options
        assert not {"\x1b", "\x07", "\u202e"} & {*status.stdout}
        assert "\n##" not in status.stdout


@pytest.mark.parametrize(
    ("client", "file", "content"),
    [
        ("codex", ".codex/config.toml", "a = " + "[" * 100_000 + "]" * 100_000),
        ("codex", ".codex/config.toml", "a = " + "{b=" * 50_000 + "1" + "}" * 50_000),
        ("codex", ".codex/config.toml", "".join(f"[t{number}]\na=1\n" for number in range(50_000))),
        ("claude", ".mcp.json", '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
        ("vscode", ".vscode/mcp.json", "{" + ",".join(f'"k{number}":1' for number in range(50_000)) + "}"),
        ("opencode", "opencode.json", "/*" * 300_000),
    ],
    ids=["toml nested", "toml tables nested", "toml long", "json nested", "json long", "comments"],
)
def test_a_clients_file_of_a_repository_costs_little_and_stays_as_it_is(project, run, client, file, content):
    path = project.write(file, content)
    began = time.process_time()
    for command in (["connect", client, "--no-verify"], ["connect"], ["connect", client, "--remove"]):
        result = run(*command)
        assert command == ["connect"] or result.exit_code == 1
    assert time.process_time() - began < 10
    assert path.read_text() == content


def test_doctor_starts_an_entry_of_a_repository_only_as_connect_writes_it(project, tmp_path):
    """An option of our own command may name a folder of plugins, or a file that is written."""
    project.write("evil/evil.py", "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n")
    [own] = installed_command(os.environ)
    plugins = ["--plugins-dir", str(project.root / "evil")]
    entries = {
        ".mcp.json": ("mcpServers", ["serve", "--path", ".", *plugins]),
        ".cursor/mcp.json": ("mcpServers", ["serve", "--log-json", str(tmp_path / "written"), "--path", "."]),
        ".vscode/mcp.json": ("servers", ["serve", *plugins]),
        ".gemini/settings.json": ("mcpServers", ["serve", "--path", str(project.root), "--state-store", "evil"]),
    }
    for file, (key, arguments) in entries.items():
        entry = {"type": "stdio", "command": own, "args": arguments, "env": {"DEEPWORK_PLUGINS_DIR": plugins[1]}}
        project.write(file, json.dumps({key: {"deepwork": entry}}))
    command = [sys.executable, "-P", "-m", "deepwork", "doctor", "--path", str(project.root)]
    report = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "COLUMNS": "500"})
    assert report.stdout.count("not tried") == len(entries), report.stdout
    assert not (project.root / "evil" / "ran").exists()
    assert not (tmp_path / "written").exists()


def test_what_asks_for_trust_cannot_steer_the_terminal_in_which_it_is_asked(project):
    project.write("x.sh", f"echo {HIDDEN}\r\x1b[1A\n")
    commands = {f"n{HIDDEN}": {"run": ["sh", "x.sh", HIDDEN]}}
    project.write(".deepwork/config.yml", json.dumps({"quality_gate": {"commands": commands}}))
    output = in_terminal(project, "trust", answers="n\n")
    ours = ("\x1b[1m", "\x1b[0m")
    for code in ours:
        output = output.replace(code, "")
    assert not {"\x1b", "\x07", "\u202e"} & {*output}
    assert "\n## Approved" not in output.replace("\r", "")


def in_terminal(project, *arguments, answers):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "deepwork", *arguments, "--path", str(project.root)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd="/") as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        output = b""
        with suppress(OSError):
            while chunk := os.read(ours, 4096):
                output += chunk
        process.wait(100)
    os.close(ours)
    return output.decode()


async def test_a_planted_session_makes_nobody_read_a_large_file_a_thousand_times(project):
    """What has changed since is found by reading the files that the session says were completed."""
    project.write_job()
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
    with project.write("big").open("wb") as file:
        file.truncate(40 * 1024 * 1024)
    file = project.state / f"session_{session_id}.json"
    stored = json.loads(file.read_text())
    digests = {"./" * number + "big": "sha256:0" for number in range(1000)}
    progress = {"step_id": "a", "completed_at": stored["started_at"], "digests": digests}
    stored["step_progress"] = {"a": {**stored["step_progress"].get("a", {}), **progress}}
    file.write_text(json.dumps(stored))
    began = time.process_time()
    async with project.agent() as agent:
        with suppress(Exception):
            await agent.call("finished_step", session_id=session_id, step_id="?", outputs={})
    assert time.process_time() - began < 10


@pytest.mark.parametrize("variable", ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"])
def test_a_folder_of_the_user_that_a_link_leads_into_the_project_is_refused(
    project, run, tmp_path, monkeypatch, variable
):
    project.write("user/deepwork/config.yml", "quality_gate: {enabled: false}\n")
    (tmp_path / "link").symlink_to(project.root / "user")
    monkeypatch.setenv(variable, str(tmp_path / "link"))
    if variable == "HOME":
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.delenv("XDG_CONFIG_HOME")
    for command in (["trust"], ["jobs", "list"], ["sessions", "list"]):
        result = run(*command)
        assert result.exit_code == 1, command
        assert "lies in the project" in result.stderr
