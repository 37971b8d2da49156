"""The real Claude Code, Codex and Gemini CLI, from npm, with scripted models on this machine and no account."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_vendor import Vendor, make_home

from deepwork.testing import step

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]

CLIENTS = Path(__file__).parents[3] / "tools" / "clients.py"
UNAVAILABLE = 69
CANARY = "CANARY-of-the-project"
# Where clients look for instructions of a project; any of them may be a stranger's.
INSTRUCTIONS = (
    *("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/agents/canary.md", ".claude/commands/canary.md"),
    *(".claude/skills/canary/SKILL.md", ".claude/rules/canary.md", ".claude/output-styles/canary.md"),
    *("AGENTS.md", "AGENTS.override.md", ".agents/skills/canary/SKILL.md", ".codex/skills/canary/SKILL.md"),
    *(".codex/prompts/canary.md", "GEMINI.md", ".gemini/GEMINI.md", ".gemini/commands/canary.toml"),
)


@pytest.fixture(scope="module")
def programs():
    """The folder of the programs, installed once."""
    process = subprocess.run([sys.executable, CLIENTS], capture_output=True, text=True)
    if process.returncode == UNAVAILABLE and not os.environ.get("CI"):
        pytest.skip(f"THE CLIENTS THAT NEED NODE ARE NOT TESTED: {process.stderr.strip()}")
    assert process.returncode == 0, process.stderr
    return Path(process.stdout.strip())


class Desk:
    """A home without an account, a project, and a model for each vendor."""

    def __init__(self, project, home, programs):
        self.project, self.home = project, home
        self.claude, self.codex = Vendor(), Vendor()
        project.write_job(steps=[step(name) for name in "abcdef"])
        for name in "abcdef":
            project.write(f"{name}.md")
        # What a repository may bring for the clients, and what must not run.
        touch = {"command": "touch", "args": [str(project.root / "FOREIGN")]}
        project.write(".mcp.json", json.dumps({"mcpServers": {"foreign": touch}}))
        hook = {"type": "command", "command": f"touch {project.root / 'FOREIGN'}"}
        project.write(".claude/settings.json", json.dumps({"hooks": {"SessionStart": [{"hooks": [hook]}]}}))
        project.write(".codex/config.toml", f'[mcp_servers.foreign]\ncommand = "touch"\nargs = {touch["args"]}\n')
        skill = f"---\nname: canary\ndescription: {CANARY}\n---\n{CANARY}\n"
        for path in INSTRUCTIONS:
            project.write(path, skill)
        self.files = self.listed()
        self.variables = make_home(home, programs, self.claude, self.codex)
        with (home / ".codex" / "config.toml").open("a") as config:
            config.write(
                f'[projects."{project.root}"]\ntrust_level = "trusted"\n'
                f'[mcp_servers.users]\ncommand = "touch"\nargs = {json.dumps([str(home / "STARTED")])}\n'
            )

    def listed(self):
        files = [path for path in self.project.root.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.project.root)) for path in files if ".deepwork/tmp" not in str(path)}

    def run(self, *words):
        command = [sys.executable, "-m", "deepwork", "run", *words, "--json", "--path", str(self.project.root)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        self.stderr = result.stderr
        return result.returncode, json.loads(result.stdout) if result.stdout else {}

    def agents_of_steps(self):
        [file] = self.project.state.glob("session_*.json")
        history = json.loads(file.read_text())["history"]
        return [(entry["step_id"], entry["detail"]["agent"]) for entry in history if entry["kind"] == "step_completed"]


@pytest.fixture
def desk(project, programs, tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith("XDG_CACHE"):
            monkeypatch.delenv(name)
    desk = Desk(project, tmp_path / "home", programs)
    for name, value in {**desk.variables, "ANTHROPIC_API_KEY": "stub"}.items():
        monkeypatch.setenv(name, value)
    yield desk
    desk.claude.close()
    desk.codex.close()


def test_a_session_goes_from_claude_to_codex_and_nothing_of_the_project_runs(desk):
    desk.claude.steps = 2
    code, report = desk.run("demo", "--goal", "a goal", "--with", "claude", "--max-time", "60s", "--no-wait")
    assert code == 0, desk.stderr  # three agents of two steps each
    assert desk.agents_of_steps() == [(name, "claude") for name in "abcdef"]
    assert len(report["workers"]) == 3
    assert (report["totals"]["input_tokens"], report["totals"]["output_tokens"]) == desk.claude.books
    assert report["totals"]["cost_usd"] > 0
    assert desk.listed() == desk.files


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_no_instruction_of_the_project_reaches_a_model(desk, name):
    code, _ = desk.run("demo", "--goal", "a goal", "--with", name)
    assert code == 0, desk.stderr
    bodies = getattr(desk, name).bodies
    assert len(bodies) > 6
    assert not (desk.home / "STARTED").exists(), "a server of the user has more than our tools"
    assert [match for body in bodies for match in re.findall(f".{{80}}{CANARY}", body)] == []


def test_claude_reads_and_edits_in_the_project_and_nothing_else(desk, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET-of-the-user")
    root, state = desk.project.root, desk.project.state
    content = {"content": "written by the agent"}
    desk.claude.first_calls = [
        ("Write", {"file_path": str(root / "mine.md"), **content}),
        ("Write", {"file_path": str(tmp_path / "outside.md"), **content}),
        ("Write", {"file_path": str(state / "forged.json"), **content}),
        ("Read", {"file_path": str(secret)}),
        ("Bash", {"command": f"touch {root / 'FROM-A-SHELL'}", "description": "touch"}),
    ]
    code, _ = desk.run("demo", "--goal", "a goal", "--with", "claude")
    assert code == 0, desk.stderr
    assert (root / "mine.md").read_text() == "written by the agent"
    assert not (tmp_path / "outside.md").exists()
    assert not (state / "forged.json").exists()
    assert not (root / "FROM-A-SHELL").exists()
    assert not [body for body in desk.claude.bodies if "SECRET-of-the-user" in body]


def test_codex_writes_in_the_project_and_not_the_state_of_sessions(desk):
    config = desk.home / ".codex" / "config.toml"
    config.write_text('sandbox_mode = "danger-full-access"\n' + config.read_text())
    root, state = desk.project.root, desk.project.state
    forge = "echo forged > .deepwork/tmp/forged.json; echo x >> .deepwork/tmp/runs/*/events.jsonl"
    desk.codex.first_calls = [("exec_command", {"cmd": f"echo written by the agent > mine.md; {forge}"})]
    code, _ = desk.run("demo", "--goal", "a goal", "--with", "codex")
    assert code == 0, desk.stderr
    assert (root / "mine.md").read_text() == "written by the agent\n"
    assert not (state / "forged.json").exists()
    [events] = state.glob("runs/*/events.jsonl")
    assert "\nx\n" not in events.read_text()


def test_a_limit_of_claude_is_codex_s_turn(desk):
    desk.claude.refuses = (
        429,
        {"x-should-retry": "false"},
        {"type": "error", "error": {"type": "rate_limit_error", "message": "This would exceed your rate limit."}},
    )
    code, report = desk.run("demo", "--goal", "a goal", "--with", "claude,codex")
    assert code == 0, desk.stderr
    assert [worker["agent"] for worker in report["workers"]] == ["claude", "codex"]
    assert len(desk.claude.requests) == 1
    assert desk.agents_of_steps() == [(name, "codex") for name in "abcdef"]
    used = report["agents"]["codex"]
    assert (used["input_tokens"], used["output_tokens"], used["cost_usd"]) == (*desk.codex.books, None)
    assert desk.listed() == desk.files


def test_an_agent_without_a_login_is_asked_once(desk):
    desk.codex.refuses = (
        401,
        {},
        {"error": {"message": "Incorrect API key provided: stub.", "code": "invalid_api_key"}},
    )
    code, report = desk.run("demo", "--goal", "a goal", "--with", "codex", "--no-wait")
    assert code == 4, desk.stderr
    assert report["paused"]["kind"] == "login"
    assert len(report["workers"]) == 1


def test_a_budget_ends_claude_within_a_request(desk):
    code, report = desk.run("demo", "--goal", "a goal", "--with", "claude", "--budget-usd", "0.003", "--no-wait")
    assert code == 5, desk.stderr
    spent = report["totals"]["cost_usd"]
    assert 0.003 <= spent < 0.003 + 1.5 * spent / len(desk.claude.requests)


def test_gemini_takes_instructions_of_the_project_whatever_its_settings_say(desk, tmp_path):
    """This is why it is not offered: in a private folder nothing of the project starts, but its `GEMINI.md` counts."""
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}
    settings |= {"context": {"fileName": "NO-SUCH-FILE.md", "memoryBoundaryMarkers": []}, "skills": {"enabled": False}}
    private, vendor = tmp_path / "private", Vendor()
    for folder in (private / "home" / ".gemini", private / "desk"):
        folder.mkdir(parents=True)
    (private / "home" / ".gemini" / "settings.json").write_text(json.dumps(settings))
    foreign = {"mcpServers": {"foreign": {"command": "touch", "args": [str(desk.project.root / "FOREIGN")]}}}
    desk.project.write(".gemini/settings.json", json.dumps(foreign))
    variables = {"GEMINI_CLI_HOME": str(private / "home"), "GEMINI_API_KEY": "stub"}
    variables |= {"GEMINI_MODEL": "gemini-2.5-pro", "GOOGLE_GEMINI_BASE_URL": vendor.url}
    process = subprocess.run(
        [
            "gemini",
            "--output-format",
            "stream-json",
            "--extensions",
            "none",
            "--include-directories",
            desk.project.root,
        ],
        cwd=private / "desk",
        env={**os.environ, **variables},
        input="Do what the model says",
        capture_output=True,
        text=True,
        timeout=300,
    )
    vendor.close()
    assert process.returncode == 0, process.stderr
    assert not (desk.project.root / "FOREIGN").exists()
    assert any(CANARY in body for body in vendor.bodies)
