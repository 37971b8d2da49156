"""The real Claude Code and the real Codex, from npm, with scripted models on this machine and no account."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_vendor import Vendor

from deepwork.testing import step

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]

CLIENTS = Path(__file__).parents[3] / "tools" / "clients.py"
UNAVAILABLE = 69


@pytest.fixture(scope="module")
def programs():
    """The folder of the programs, installed once."""
    done = subprocess.run([sys.executable, CLIENTS], capture_output=True, text=True)
    if done.returncode == UNAVAILABLE and not os.environ.get("CI"):
        pytest.skip(f"THE CLIENTS THAT NEED NODE ARE NOT TESTED: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


class Desk:
    """A home without an account, a project, and a model for each vendor."""

    def __init__(self, project, home):
        self.project = project
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
        self.files = self.listed()
        home.mkdir()
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(
            'model = "scripted"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{self.codex.url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
            "request_max_retries = 0\nstream_max_retries = 0\n"
            f'[projects."{project.root}"]\ntrust_level = "trusted"\n'
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
    desk = Desk(project, tmp_path / "home")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", desk.claude.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "stub")
    monkeypatch.setenv("OPENAI_API_KEY", "stub")
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "0")
    yield desk
    desk.claude.close()
    desk.codex.close()


def test_a_session_goes_from_claude_to_codex_and_nothing_of_the_project_runs(desk):
    desk.claude.steps = 2
    code, told = desk.run("demo", "--goal", "a goal", "--with", "claude", "--max-time", "60s", "--no-wait")
    assert code == 0, desk.stderr  # three agents of two steps each
    assert desk.agents_of_steps() == [(name, "claude") for name in "abcdef"]
    assert len(told["workers"]) == 3
    assert (told["totals"]["input_tokens"], told["totals"]["output_tokens"]) == desk.claude.books
    assert told["totals"]["cost_usd"] > 0
    assert desk.listed() == desk.files


def test_a_limit_of_claude_is_codex_s_turn(desk):
    desk.claude.refuses = (
        429,
        {"x-should-retry": "false"},
        {"type": "error", "error": {"type": "rate_limit_error", "message": "This would exceed your rate limit."}},
    )
    code, told = desk.run("demo", "--goal", "a goal", "--with", "claude,codex")
    assert code == 0, desk.stderr
    assert [worker["agent"] for worker in told["workers"]] == ["claude", "codex"]
    assert len(desk.claude.requests) == 1
    assert desk.agents_of_steps() == [(name, "codex") for name in "abcdef"]
    used = told["agents"]["codex"]
    assert (used["input_tokens"], used["output_tokens"], used["cost_usd"]) == (*desk.codex.books, None)
    assert desk.listed() == desk.files


def test_an_agent_without_a_login_is_asked_once(desk):
    desk.codex.refuses = (
        401,
        {},
        {"error": {"message": "Incorrect API key provided: stub.", "code": "invalid_api_key"}},
    )
    code, told = desk.run("demo", "--goal", "a goal", "--with", "codex", "--no-wait")
    assert code == 4, desk.stderr
    assert told["paused"]["kind"] == "login"
    assert len(told["workers"]) == 1


def test_a_budget_ends_claude_within_a_request(desk):
    code, told = desk.run("demo", "--goal", "a goal", "--with", "claude", "--budget-usd", "0.003", "--no-wait")
    assert code == 5, desk.stderr
    spent = told["totals"]["cost_usd"]
    assert 0.003 <= spent < 0.003 + 1.5 * spent / len(desk.claude.requests)
