"""Attacks beyond the first threats: each does what a repository, an agent or another principal could do."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from deepwork.testing import HttpWire

pytestmark = pytest.mark.anyio

SECRET = "what lies outside"
ALICE, BOB = "alices-token-for-tests", "bobs-token-for-tests"
PLUGIN = "from pathlib import Path\nPath(__file__).with_name('ran').touch()\n"


def deepwork(project, *arguments, cwd=None, stdin="", **environment):
    """Run a command as its user does in the folder of the project."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "deepwork", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=240,
        cwd=cwd or project.root,
        env={**os.environ, **environment},
    )


# What a repository brings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["plugins"], ["doctor"], ["jobs", "list"], ["serve"]])
def test_a_relative_folder_of_plugins_does_not_make_a_repository_supply_them(project, command):
    """DEEPWORK_PLUGINS_DIR may stand in a profile; relative, it would mean another folder in each repository."""
    project.write("plugins/evil.py", PLUGIN)
    ended = deepwork(project, *command, DEEPWORK_PLUGINS_DIR="plugins")
    assert "DEEPWORK_PLUGINS_DIR is 'plugins', a relative path" in ended.stdout + ended.stderr
    assert not (project.root / "plugins" / "ran").exists()


@pytest.mark.parametrize("place", [".deepwork/plugins", "plugins", ".deepwork"])
def test_no_setting_of_a_project_loads_plugins_of_its_folder(project, place):
    project.write(f"{place}/evil.py", PLUGIN)
    for section in ({"plugins": {"dir": place}}, {"plugins": {"folder": place}}, {"plugins_dir": place}):
        project.write(".deepwork/config.yml", json.dumps(section))
        assert deepwork(project, "plugins").returncode != 0
    assert not list(project.root.rglob("ran"))


@pytest.mark.parametrize("file", [".mcp.json", ".cursor/mcp.json", ".deepwork/schema/job.schema.json"])
@pytest.mark.parametrize("kind", ["/dev/zero", "fifo", "terabyte", "folder", "list", "deep"])
def test_doctor_waits_for_no_file_of_a_client_and_reads_no_endless_one(project, file, kind):
    """F15, b06: /dev/zero took three GiB, a FIFO hung, and a list in mcpServers was a bug."""
    path = project.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "/dev/zero":
        path.symlink_to(kind)
    else:
        path.write_text({"terabyte": "", "list": '{"mcpServers": [1]}', "deep": "[" * 100_000}[kind])
        if kind == "terabyte":
            os.truncate(path, 1 << 40)
    ended = deepwork(project, "doctor", "--json")
    assert "bug" not in ended.stdout + ended.stderr
    assert json.loads(ended.stdout)["findings"]


@pytest.mark.parametrize("kind", ["/dev/zero", "fifo", "folder", "loop"])
@pytest.mark.parametrize("command", [["doctor"], ["status"], ["jobs", "list"], ["sessions", "list"]])
def test_a_configuration_that_is_no_file_makes_no_command_wait(project, kind, command):
    path = project.root / ".deepwork" / "config.yml"
    path.parent.mkdir()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("config.yml" if kind == "loop" else kind)
    ended = deepwork(project, *command)
    assert "Traceback" not in ended.stderr
    assert "bug" not in ended.stdout + ended.stderr


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "packed-refs"])
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "secret"])
async def test_a_git_folder_with_special_files_makes_no_call_wait_and_shows_nothing_of_others(
    project, tmp_path, name, kind
):
    """An archive can bring a `.git` that git never would."""
    project.write(tmp_path / "secret", SECRET)
    project.write(".git/HEAD", "ref: refs/heads/main\n")
    path = project.root / ".git" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "secret" if kind == "secret" else kind)
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        await agent.finish({"a.md": "a.md"})
    assert not [file for file in project.state.iterdir() if file.is_file() and SECRET in file.read_text()]


def test_no_command_writes_through_a_link_of_the_repository_into_a_file_outside(project, tmp_path):
    """`deepwork connect` and `init` write files whose places a repository may have taken."""
    outside = project.write(tmp_path / "outside.json", "{}")
    for place in (".mcp.json", ".cursor/mcp.json", ".deepwork/config.yml", ".deepwork/schema/job.schema.json"):
        path = project.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(outside)
    for command in (["connect", "claude", "--scope", "project", "--yes"], ["connect", "cursor", "--yes"], ["init"]):
        assert "Traceback" not in deepwork(project, *command).stderr
    assert outside.read_text() == "{}"


@pytest.mark.parametrize("event", ["SessionStart", "Stop", "PreCompact", "PostToolUse"])
def test_a_hook_in_a_hostile_repository_says_no_escape_and_no_text_of_others(project, tmp_path, event):
    project.write_job()
    project.write(tmp_path / "outside.json", SECRET)
    project.write(project.state / "session_a\x1b[2J.json", "{}")
    (project.state / "session_out.json").symlink_to(tmp_path / "outside.json")
    (project.state / "session_zero.json").symlink_to("/dev/zero")
    os.mkfifo(project.state / "session_pipe.json")
    data = json.dumps({"session_id": "../../x", "cwd": str(project.root), "transcript_path": "/etc/passwd"})
    for command in (["hook", event], ["status"], ["jobs", "get-stack"]):
        ended = deepwork(project, *command, stdin=data)
        assert not re.search("[\x1b]|root:|outside", ended.stdout)
        assert "Traceback" not in ended.stderr


# Who may see what ----------------------------------------------------------------------------------------------------


@pytest.fixture
def tokens(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"alice {ALICE}\nbob {BOB}\n")
    file.chmod(0o600)
    return str(file)


def test_completions_and_prompts_show_no_session_of_another_principal(project, listen, tokens):
    project.write_job()
    _, url, _ = listen("--token-file", tokens)
    completion = {
        "ref": {"type": "ref/prompt", "name": "resume"},
        "argument": {"name": "session_id", "value": ""},
    }
    completions = {}
    with HttpWire(url, headers={"Authorization": f"Bearer {ALICE}"}) as alice:
        alice.greet()
        started = alice.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
        session_id = started["begin_step"]["session_id"]
        completions["alice"] = alice.ask("completion/complete", **completion)["completion"]["values"]
    with HttpWire(url, headers={"Authorization": f"Bearer {BOB}"}) as bob:
        bob.greet()
        completions["bob"] = bob.ask("completion/complete", **completion)["completion"]["values"]
        prompt = bob.request("prompts/get", name="resume", arguments={"session_id": session_id})
    assert completions == {"alice": [session_id], "bob": []}
    assert "Instructions for a" not in json.dumps(prompt)


# What lies on the disk, and who is asked -----------------------------------------------------------------------------


async def test_the_state_folder_is_born_private_and_so_is_every_log(project, monkeypatch, tmp_path):
    """F13, e01: it was made 0755 and changed afterwards, and another user won that race."""
    modes = []
    mkdir = os.mkdir

    def watched(path, mode=0o777, **options):
        mkdir(path, mode, **options)
        if os.fspath(path) == "tmp":
            modes.append(os.stat(path, dir_fd=options.get("dir_fd")).st_mode & 0o777)

    monkeypatch.setattr(os, "mkdir", watched)
    before = os.umask(0)
    try:
        project.write_job()
        async with project.agent() as agent:
            await agent.start()
        log = tmp_path / "log.jsonl"
        deepwork(project, "serve", "--log-json", str(log))
    finally:
        os.umask(before)
    assert modes == [0o700]
    private = [log, *(file for file in project.state.rglob("*") if file.is_file() and file.name != ".gitignore")]
    assert {file.stat().st_mode & 0o077 for file in private} == {0}


def test_doctor_says_who_can_change_an_environment_that_lies_in_the_project():
    """It is its user's choice, so its programs run; whoever can write there can change them."""
    folder = Path(sys.prefix).parent
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "deepwork", "doctor", "--json", "--path", str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd="/",
        check=False,
    )
    texts = [finding["text"] for finding in json.loads(ended.stdout)["findings"]]
    assert [text for text in texts if text.startswith("the environment that runs deepwork lies in it; ")]


def test_in_a_terminal_trust_shows_each_request_and_asks_for_each(project):
    """It was all or nothing. Scripts are shown, and later only how they differ."""
    project.write("one.sh", "echo one\n")
    project.write("two.sh", "echo two\n")
    commands = {name: {"run": ["sh", f"{name}.sh"]} for name in ("one", "two")}
    project.write(".deepwork/config.yml", json.dumps({"quality_gate": {"commands": commands}}))
    text = in_terminal(project, "trust", answers="y\nn\n")
    assert text.count("Trust exactly this?") == 2
    assert text.index("echo one") < text.index("Trust exactly this?") < text.index("echo two")
    assert "Trusted: 1 of 2" in text
    project.write("one.sh", "echo changed\n")
    text = in_terminal(project, "trust", answers="n\nn\n")
    assert "-echo one" in text
    assert "+echo changed" in text
    assert "Trusted: 0 of 2" in text


def in_terminal(project, *arguments, answers):
    """Run a command in a terminal of its own, type the answers, and give what it shows."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "deepwork", *arguments, "--path", str(project.root)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd="/") as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        output = b""
        with suppress(OSError):  # the kernel's way to say that the other side is closed
            while chunk := os.read(ours, 4096):
                output += chunk
        process.wait(100)
    os.close(ours)
    return output.decode()
