"""`deepwork run` and `deepwork runs`, with programs that play Claude Code and Codex."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepwork.testing import step
from deepwork.testing.wire import PATIENCE

FAKE = Path(__file__).with_name("fake_cli.py")


class Desk:
    """A project, programs that play the vendors', and the command."""

    def __init__(self, project, folder):
        self.project = project
        self.folder = folder
        folder.mkdir()
        for name in ("claude", "codex"):
            (folder / name).write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
            (folder / name).chmod(0o755)
        project.write_job(steps=[step(name) for name in "abcd"])

    def plan(self, **acts):
        (self.folder / "plan.json").write_text(json.dumps(acts))

    def start(self, *words):
        command = [sys.executable, "-m", "deepwork", *words, "--path", str(self.project.root)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __call__(self, *words):
        process = self.start(*words)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        self.stdout, self.stderr, self.code = stdout, stderr, process.returncode
        return self.code

    def run(self, *words):
        return self("run", "demo", "--goal", "a goal", *words)

    @property
    def seen(self):
        file = self.folder / "seen.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def pids(self, name):
        lines = (self.folder / "calls").read_text().splitlines()
        return [int(line.split()[1]) for line in lines if line.startswith(name)]

    def session(self):
        [file] = self.project.state.glob("session_*.json")
        return json.loads(file.read_text())

    def shown(self):
        assert self("runs", "show", "--json", self.session()["session_id"][:6]) == 0, self.stderr
        return json.loads(self.stdout)

    def agents_of_steps(self):
        history = self.session()["history"]
        return [entry["detail"].get("agent") for entry in history if entry["kind"] == "step_completed"]


@pytest.fixture
def desk(project, tmp_path, monkeypatch):
    desk = Desk(project, tmp_path / "programs")
    monkeypatch.setenv("PATH", f"{desk.folder}{os.pathsep}{os.environ['PATH']}")
    return desk


def lives(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def test_a_job_goes_on_with_the_other_vendor_at_a_limit(desk):
    desk.plan(claude=[{"steps": 2, "then": "limit", "for": 3600, "cost": 0.25}], codex=[{"steps": 1, "then": "end"}])
    assert desk.run("--with", "claude,codex", "--json") == 0, desk.stderr
    report = json.loads(desk.stdout)
    assert (report["status"], report["exit_code"]) == ("completed", 0)
    assert report["totals"] == {"input_tokens": 300, "output_tokens": 30, "cost_usd": 0.25}
    assert desk.agents_of_steps() == ["claude", "claude", "codex", "codex"]
    assert [(worker["agent"], worker["hooks"]) for worker in report["workers"]] == [
        ("claude", True),
        ("codex", False),
        ("codex", False),
    ]
    desk("sessions", "show", report["session_id"])
    assert re.findall(r"by (\w+)$", desk.stdout, re.MULTILINE) == ["local", "claude", "claude", "codex", "codex"]
    desk("runs", "show", report["session_id"])
    assert "codex (without hooks)" in desk.stdout.replace("  ", " ")
    desk("runs", "log", report["session_id"], "--worker", "1")
    assert "usage limit reached" in desk.stdout
    # Nothing is left in the project but the work and our state.
    assert sorted(path.name for path in desk.project.root.iterdir()) == [".deepwork", "a.md", "b.md", "c.md", "d.md"]


@pytest.mark.slow
def test_an_agent_sees_its_own_keys_and_no_other_secret(desk, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key of claude")
    monkeypatch.setenv("OPENAI_API_KEY", "key of codex")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}], codex=[{"steps": 3, "then": "end"}])
    assert desk.run("--with", "claude", "--with", "codex") == 0, desk.stderr
    claude, codex = desk.seen
    assert "ANTHROPIC_API_KEY" in claude["variables"]
    assert "OPENAI_API_KEY" not in claude["variables"]
    assert "OPENAI_API_KEY" in codex["variables"]
    assert "ANTHROPIC_API_KEY" not in codex["variables"]
    assert not {"AWS_SECRET_ACCESS_KEY"} & {*claude["variables"], *codex["variables"]}
    assert claude["cwd"] == codex["cwd"] == str(desk.project.root)


@pytest.mark.slow
def test_without_more_the_narrowest_preset_counts(desk):
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}], codex=[{"steps": 3, "then": "end"}])
    assert desk.run("--with", "claude,codex") == 0, desk.stderr
    claude, codex = (" ".join(call["arguments"]) for call in desk.seen)
    assert "Bash" not in claude
    assert "--tools Read,Edit,Write,Glob,Grep " in claude
    assert "--strict-mcp-config" in claude
    assert 'default_permissions="deepwork-run"' in codex
    assert '".deepwork/tmp" = "read"' in codex
    assert '"network" = {"enabled" = false}' in codex
    assert 'approval_policy="never"' in codex


@pytest.mark.slow
@pytest.mark.parametrize(("where", "expected"), [("option", True), ("user", True), ("project", False)])
def test_a_shell_is_the_user_s_to_allow(desk, where, expected):
    setting = "plugins: {settings: {run: {allow: [shell]}}}\n"
    if where == "user":
        desk.project.write(Path(os.environ["XDG_CONFIG_HOME"]) / "deepwork" / "config.yml", setting)
    if where == "project":
        desk.project.write(".deepwork/config.yml", setting)
    desk.plan(claude=[{"steps": 4, "then": "end"}])
    assert desk.run("--with", "claude", *(["--allow", "shell"] if where == "option" else [])) == 0, desk.stderr
    assert ("Bash" in " ".join(desk.seen[0]["arguments"])) is expected


@pytest.mark.slow
def test_a_daemon_of_an_agent_has_ended_before_the_next_one_works(desk):
    desk.plan(claude=[{"steps": 1, "then": "end", "daemon": True}, {"steps": 3, "then": "end"}])
    assert desk.run("--with", "claude") == 0, desk.stderr
    [daemon] = desk.pids("daemon")
    assert not lives(daemon)


def test_a_runner_that_is_killed_repeats_nothing_and_ends_its_agent(desk):
    desk.plan(claude=[{"steps": 2, "then": "hang", "daemon": True}, {"steps": 2, "then": "end"}])
    first = desk.start("run", "demo", "--goal", "a goal", "--with", "claude")
    wait_for((desk.folder / "hangs").exists)
    # The supervisor of the agent is killed too, so that only the next runner can end it.
    for pid in (first.pid, *map(int, subprocess.check_output(["pgrep", "-f", "supervisor.py"], text=True).split())):
        if pid == first.pid or _parent(pid) == first.pid:
            os.kill(pid, signal.SIGKILL)
    first.communicate()
    session_id = desk.session()["session_id"]
    [agent], [daemon] = desk.pids("claude"), desk.pids("daemon")
    assert desk("run", "--continue", session_id[:8]) == 0, desk.stderr
    assert not lives(agent)
    assert not lives(daemon)
    completed_steps = [entry["step_id"] for entry in desk.session()["history"] if entry["kind"] == "step_completed"]
    assert completed_steps == ["a", "b", "c", "d"]
    assert "c" in desk.seen[1]["prompt"]
    assert len(desk.shown()["workers"]) == 2


def _parent(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0


def test_an_agent_that_is_killed_is_followed_by_the_next(desk):
    desk.plan(claude=[{"steps": 2, "then": "hang"}, {"steps": 2, "then": "end"}])
    run = desk.start("run", "demo", "--goal", "a goal", "--with", "claude")
    wait_for((desk.folder / "hangs").exists)
    os.kill(desk.pids("claude")[0], signal.SIGKILL)
    _, stderr = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, stderr
    assert desk.agents_of_steps() == ["claude"] * 4


@pytest.mark.slow
def test_a_second_runner_names_the_first_and_stop_lets_the_call_finish(desk):
    desk.plan(claude=[{"steps": 2, "then": "end", "until": str(desk.folder)}])
    run = desk.start("run", "demo", "--goal", "a goal", "--with", "claude")
    wait_for(lambda: [*desk.project.state.glob("runs/*/worker-1.jsonl")] and desk.seen)
    session_id = desk.session()["session_id"]
    assert desk("run", "--continue", session_id, "--with", "claude") == 1
    assert str(run.pid) in desk.stderr
    wait_for(lambda: "tool_use" in next(desk.project.state.glob("runs/*/worker-1.jsonl")).read_text())
    assert desk("runs", "stop", "--json", session_id) == 0, desk.stderr
    assert json.loads(desk.stdout) == {"session_id": session_id, "runner": run.pid}
    assert any("finishes its call" in line for line in run.stderr)
    (desk.folder / "a").touch()
    run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert desk.session()["current_step_id"] == "b"
    assert desk("runs", "stop", session_id) == 1
    assert desk.shown()["state"] == "ended"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run"], 2),
        (["run", "demo"], 2),
        (["run", "demo", "--goal", " "], 2),
        (["run", "demo", "--continue", "x", "--goal", "g"], 2),
        (["run", "demo", "--goal", "g", "--with", "nobody"], 1),
        (["run", "demo", "--goal", "g", "--with", "claude,nobody"], 1),
        (["run", "demo", "--goal", "g", "--with", ","], 2),
        (["run", "nothing", "--goal", "g", "--with", "claude"], 1),
        (["run", "demo", "nothing", "--goal", "g", "--with", "claude"], 0),  # a job's only workflow has any name
        (["run", "demo", "--goal", "g", "--allow", "everything"], 2),
        (["run", "demo", "--goal", "g", "--max-time", "soon"], 2),
        (["run", "demo", "--goal", "g", "--max-time", "0s"], 2),
        (["run", "demo", "--goal", "g", "--budget-usd", "0"], 2),
        (["run", "demo", "--goal", "g", "--on-limit", "shout"], 2),
        (["run", "--continue", "nothing"], 1),
        (["run", "demo", "--goal", "g", "--print-unit"], 2),
        (["runs", "show", "nothing"], 1),
        (["runs", "log", "nothing"], 1),
        (["runs", "stop", "nothing"], 1),
    ],
)
def test_a_wrong_command_line_starts_nothing(desk, words, code):
    desk.plan(claude=[{"steps": 4, "then": "end"}])
    assert desk(*words) == code, desk.stderr
    if code:
        assert desk.seen == []
        assert not [*desk.project.state.glob("session_*.json")]
        assert "Traceback" not in desk.stderr


def test_an_agent_whose_program_is_missing_starts_nothing(desk):
    (desk.folder / "codex").unlink()
    desk.plan(claude=[{"steps": 4, "then": "end"}])
    assert desk.run("--with", "claude,codex") == 1
    assert "'codex'" in desk.stderr
    assert desk.seen == []
    assert not [*desk.project.state.glob("session_*.json")]
    # Without `--with` the first that is there works.
    assert desk.run() == 0, desk.stderr


def test_a_budget_names_the_vendor_that_says_no_dollars(desk):
    desk.plan(claude=[{"steps": 4, "then": "end", "cost": 0.1}])
    assert desk.run("--with", "claude,codex", "--budget-usd", "5") == 0, desk.stderr
    assert "codex never says what it costs" in desk.stderr
    arguments = desk.seen[0]["arguments"]
    assert arguments[arguments.index("--max-budget-usd") + 1] == "5.000000"


def test_units_are_printed_and_start_nothing(desk):
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    assert desk.run("--with", "claude", "--no-wait") == 7, desk.stderr
    session_id = desk.session()["session_id"]
    assert desk("run", "--continue", session_id[:5], "--allow", "shell", "--print-unit") == 0, desk.stderr
    assert "[Service]" in desk.stdout
    command = f"run --continue {session_id} --with claude --allow shell --on-limit wait --path {desk.project.root}"
    assert re.search(rf"^ExecStart=/\S+/deepwork {re.escape(command)}$", desk.stdout, re.MULTILINE)
    # systemd and cron have a PATH of their own, in which no agent of a home is.
    assert re.search(rf'^Environment="PATH={re.escape(str(desk.folder))}:.*"$', desk.stdout, re.MULTILINE)
    assert re.search(rf"^PATH={re.escape(str(desk.folder))}:", desk.stdout, re.MULTILINE)
    assert re.search(rf"^\*/10 \* \* \* \* /\S+/deepwork {re.escape(command)}$", desk.stdout, re.MULTILINE)
    assert desk("run", "--continue", session_id[:5], "--with", "nobody", "--print-unit") == 1
    assert desk.stdout == ""
    assert len(desk.seen) == 1


def test_a_unit_does_not_try_an_aborted_session_or_a_stopped_run_again(desk):
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    assert desk.run("--with", "claude", "--no-wait") == 7, desk.stderr
    session_id = desk.session()["session_id"]
    assert desk("run", "--continue", session_id, "--print-unit") == 0, desk.stderr
    [final] = re.findall(r"^RestartPreventExitStatus=(.+)$", desk.stdout, re.MULTILINE)
    assert desk("sessions", "abort", session_id, "--reason", "no use") == 0, desk.stderr
    assert str(desk("run", "--continue", session_id)) in final.split(), desk.stderr
    assert "130" in final.split()  # `runs stop`


@pytest.mark.slow
def test_a_file_of_the_project_cannot_be_what_runs(desk):
    """The record is in the project, so nothing in it may widen what an agent may do."""
    desk.plan(claude=[{"steps": 1, "then": "login"}, {"steps": 3, "then": "end"}])
    assert desk.run("--with", "claude", "--no-wait") == 4, desk.stderr
    [events] = desk.project.state.glob("runs/*/events.jsonl")
    events.write_text(events.read_text().replace('"allow": []', '"allow": ["all"]'))
    assert desk("run", "--continue", desk.session()["session_id"]) == 0, desk.stderr
    assert "Bash" not in " ".join(desk.seen[1]["arguments"])


@pytest.mark.parametrize("agents", [7, [7], {"claude": 1}, "claude"])
def test_options_of_a_run_that_are_none_of_ours_count_as_nothing(desk, agents):
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    assert desk.run("--with", "claude", "--no-wait") == 7, desk.stderr
    [events] = desk.project.state.glob("runs/*/events.jsonl")
    line = json.dumps({"kind": "run", "at": "x", "options": {"with": agents, "max_seconds": "long", "on_limit": []}})
    events.write_text(f"{events.read_text()}{line}\n")
    assert desk("run", "--continue", desk.session()["session_id"], "--no-wait") == 7, desk.stderr


def test_a_damaged_session_hides_no_run(desk):
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    assert desk.run("--with", "claude", "--no-wait") == 7, desk.stderr
    [file] = desk.project.state.glob("session_*.json")
    file.write_text("{")
    assert desk("runs", "--json") == 0, desk.stderr
    [run] = json.loads(desk.stdout)["runs"]
    assert (run["state"], run["status"]) == ("ended", None)


@pytest.mark.slow
def test_a_run_that_ends_at_once_notifies_before_it_ends(desk, tmp_path):
    notices = tmp_path / "told.jsonl"
    code = f"import sys; open({str(notices)!r}, 'a').write(sys.stdin.read() + '\\n')"
    desk.project.write(
        Path(os.environ["XDG_CONFIG_HOME"]) / "deepwork" / "config.yml",
        json.dumps({"notifications": {"command": [sys.executable, "-c", code]}}),
    )
    desk.plan(claude=[{"steps": 0, "then": "login"}])
    assert desk.run("--with", "claude", "--no-wait") == 4, desk.stderr
    assert "run-login" in notices.read_text()


def test_runs_are_listed(desk):
    assert desk("runs") == 0
    assert desk.stderr == "No runs.\n"
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    desk.run("--with", "claude", "--no-wait")
    assert desk("runs", "--json") == 0
    [run] = json.loads(desk.stdout)["runs"]
    assert (run["state"], run["exit_code"], run["step_id"]) == ("ended", 7, "b")
    assert run["waiting"]["cause"] == "usage limit of claude"
    assert desk("runs", "list") == 0
    assert run["session_id"] in desk.stdout
    assert re.search(r"waits until .*\d\d:\d\d: usage limit of claude$", desk.stdout, re.MULTILINE)
    assert desk("runs", "--json", "log", run["session_id"]) == 0
    log = json.loads(desk.stdout)
    assert (log["worker"], [json.loads(line)["type"] for line in log["lines"]][-1]) == (1, "result")


def test_a_runner_imports_no_server_and_no_database(desk):
    """It waits for hours, so it must be small."""
    desk.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    code = (
        "import sys; from deepwork.cli.main import main; main(sys.argv[1:], standalone_mode=False);"
        "print(sorted({'fastmcp', 'mcp', 'starlette', 'sqlalchemy', 'httpx2'} & {*sys.modules}))"
    )
    words = ["run", "demo", "--goal", "g", "--with", "claude", "--no-wait", "--path", str(desk.project.root)]
    process = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=PATIENCE)
    assert "usage limit" in process.stderr
    assert process.stdout.splitlines()[-1] == "[]", process.stdout


def test_the_scripted_agent_works_through_a_job(desk):
    assert desk.run("--with", "scripted") == 0, desk.stderr
    assert desk.agents_of_steps() == ["scripted"] * 4
