"""The contracts of plugins and runners, the check, and what is imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from deepwork.api import open_context
from deepwork.testing import PluginContract, ReviewRunnerContract
from deepwork_claude_runner.runner import ClaudeCLI
from deepwork_claude_runner.settings import ClaudeSettings


class TestClaudeCLI(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self, claude, project):
        async with open_context("claude_runner", project.root) as context:
            yield ClaudeCLI(ClaudeSettings(command=str(claude.program)), context)

    @pytest.fixture
    async def broken_runner(self, project):
        async with open_context("claude_runner", project.root) as context:
            yield ClaudeCLI(ClaudeSettings(command="no-such-program"), context)


class TestPlugin(PluginContract):
    plugin = "claude_runner"


def doctor(project, section="claude"):
    command = [sys.executable, "-m", "deepwork", "doctor", "--json", "--path", str(project.root)]
    report = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    return [
        (finding["level"], finding["text"], finding["cure"])
        for finding in report["findings"]
        if finding["check"] == section
    ]


def test_doctor_shows_program_and_version(project, claude):
    assert doctor(project) == [("ok", "claude: 9.9.9 (Claude Code)", None)]


def test_doctor_names_flags_that_an_old_program_does_not_know(project, claude):
    claude.behaves(unknown_flags=["--safe-mode"])
    text = "9.9.9 (Claude Code) does not know --safe-mode"
    assert doctor(project) == [("warning", text, "claude update")]


def test_doctor_says_how_to_get_the_program_and_warns_whoever_has_chosen_it(project, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    [(level, text, cure)] = doctor(project)
    assert not [finding for finding in doctor(project, "configuration") if finding[0] == "error"]
    assert (level, doctor(project, "quality gate")) == ("info", [])
    project.write(".deepwork/config.yml", "quality_gate: {runner: claude}")
    [(level, warning, _)] = doctor(project, "quality gate")
    assert level == "warning"
    assert warning.startswith("the reviewer 'claude' cannot work: ")
    assert "the runner claude cannot work: 'claude' cannot be started" in text
    assert "Install Claude Code" in cure


def test_declaring_imports_nothing_heavy():
    code = "import deepwork_claude_runner.plugin, sys; print(*sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"fastmcp", "deepwork_claude_runner.runner"} & set(completed.stdout.split())
