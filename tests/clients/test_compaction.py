"""Real clients that compact their context, or whose turn a limit ends: the agent is told where it stands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from claude_desk import START, Desk, RecordingModel
from client_desks import ClientDesk
from scripted_model import END
from scripted_models import ARGUMENTS, ScriptedCodexModel

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]

LEAD, RESUME = "You are in the middle of this workflow", "# Resume project_tour/write_tour"
LIMIT = {"error": {"type": "rate_limit_error", "message": "This would exceed your rate limit."}}


class Noting(RecordingModel):
    """A model that keeps every request."""

    def __init__(self, *turns):
        super().__init__()
        self.requests = []
        for turn in turns:
            self.turns.put(turn)

    def next_turn(self, body):
        self.requests.append(json.dumps(body["messages"]))
        return super().next_turn(body)


def test_claude_has_the_resume_text_in_its_summary_and_after_it(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    model = Noting(START, END, END)
    words = ["claude", "-p", "--allowedTools", "mcp__deepwork"]
    try:
        desk.run(*words, "--", "Do what the model says", url=model.url)
        before = len(model.requests)
        desk.run(*words, "--continue", "--", "/compact", url=model.url)
        summary = model.requests[before]
        desk.run(*words, "--continue", "--", "Go on", url=model.url)
    finally:
        model.close()
    assert LEAD not in model.requests[before - 1]
    assert LEAD in summary
    assert RESUME in summary
    assert RESUME in model.requests[before + 1]


def test_codex_has_the_resume_text_in_its_first_request_after_a_compaction(node_clients, tmp_path):
    start = {"namespace": "mcp__deepwork", "name": "start_workflow", "arguments": ARGUMENTS}
    model = ScriptedCodexModel([start], lambda _: None, tokens=90_000)
    try:
        desk = ClientDesk.make("codex", tmp_path, node_clients, model.url)
        printed = desk.work("-c", "model_auto_compact_token_limit=1000")
    finally:
        model.close()
    requests = [json.dumps(request) for request in model.requests]
    summary = next(number for number, text in enumerate(requests) if "CONTEXT CHECKPOINT" in text)
    assert [RESUME in request for request in requests[summary : summary + 2]] == [False, True], printed
    assert "Failed" not in printed


def test_the_limit_that_has_ended_a_turn_of_claude_is_kept_for_whoever_supervises_it(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    desk.environment["CLAUDE_CODE_MAX_RETRIES"] = "0"
    model = Noting(START, LIMIT)
    try:
        with pytest.raises(subprocess.CalledProcessError):
            desk.run("claude", "-p", "--allowedTools", "mcp__deepwork", "--", "Do what the model says", url=model.url)
    finally:
        model.close()
    [note] = (tmp_path / "home" / ".local/state/deepwork/client-sessions").glob("*.json")
    assert json.loads(note.read_text())["failure"]["error"] == "rate_limit"
