"""The real Claude Code, set up as the README says, with a model that forgets its step."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from claude_desk import PROGRAM, START, Desk
from scripted_model import END

from deepwork.testing import DeepworkProject, step

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]


def test_it_reaches_the_first_call_and_is_reminded_once_and_another_window_is_not(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    model = desk.agent(START)
    assert not model.results["toolu_start"].get("is_error")
    assert model.reminders == 1
    assert desk.agent().reminders == 0


STEPS = [f"s{number}" for number in range(10)]


def test_an_agent_that_stops_at_every_step_is_reminded_at_each_and_finishes(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    project = DeepworkProject(desk.project)
    project.write_job("lazy", steps=[step(name) for name in STEPS])
    start = {"goal": "all of it", "job_name": "lazy", "workflow_name": "main"}
    turns = [{"id": "toolu_start", "tool": "mcp__deepwork__start_workflow", "input": start}]
    for name in STEPS:
        project.write(f"{name}.md")
        report = {"step_id": name, "outputs": {f"{name}.md": f"{name}.md"}}
        turns += [END, {"id": f"toolu_{name}", "tool": "mcp__deepwork__finished_step", "input": report}]
    model = desk.agent(*turns)
    assert model.reminders == len(STEPS)
    assert "workflow_complete" in json.dumps(model.results[f"toolu_{STEPS[-1]}"])


def test_a_project_that_nobody_has_approved_is_asked_for_once(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    (tmp_path / "home/.claude/settings.json").unlink()
    assert "Pending approval" in desk.run("claude", "mcp", "list")


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ("/mcp__deepwork__review", "Review my change: call get_review_instructions"),
        ("/mcp__deepwork__start project_tour write_tour", "job_name='project_tour'"),
    ],
)
def test_the_prompts_are_commands_of_the_client(node_clients, tmp_path, prompt, text):
    desk = Desk.make(tmp_path, node_clients)
    (desk.project / ".deepwork" / "config.yml").write_text("tools: {sets: [core, review]}\n")
    # Without a terminal it would send the first message before the servers have said which prompts they have.
    patience = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000"}
    waiting = {**desk.environment, **patience, "DEEPWORK_NO_PLUGINS": ""}
    assert text in json.dumps(replace(desk, environment=waiting).agent(prompt=prompt).messages)


def test_the_plugin_passes_the_validator_and_installs(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    plugin = str(tmp_path / "plugin")
    desk.run(PROGRAM, "connect", "claude", "--plugin", plugin)
    for folder in (plugin, f"{plugin}/deepwork"):
        printed = desk.run("claude", "plugin", "validate", "--strict", folder)
        assert "Validation passed" in printed
    assert "refuses a submission" not in printed
    desk.run("claude", "plugin", "marketplace", "add", plugin)
    desk.run("claude", "plugin", "install", "deepwork@deepwork")
    assert "starts the same command" in desk.run(PROGRAM, "doctor")
    tokens = re.search(r"Always-on: +~(\d+) tok", desk.run("claude", "plugin", "details", "deepwork"))
    assert int(tokens[1]) <= 60
