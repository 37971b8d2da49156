"""Which events of the real clients call a tool: the table of the documentation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from claude_desk import START, Desk, RecordingModel
from client_desks import ClientDesk
from scripted_models import ScriptedCodexModel

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]

LIMIT = {"error": {"type": "rate_limit_error", "message": "This would exceed your rate limit."}}
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/at-the-next-breath.md"
SERVER = Path(__file__).parent / "data" / "recording_server.py"


def table():
    """The events, and for each client with its version the events that call a tool."""
    section = PAGE.read_text().partition("## Which events call a tool")[2]
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in re.findall(r"^\|.*$", section, re.MULTILINE)
    ]
    heads, events = rows[0][1:], rows[2:]
    return [row[0] for row in events], {
        head: {row[0] for row in events if row[number + 1] == "yes"} for number, head in enumerate(heads)
    }


def hooks():
    events, _ = table()
    call = {"type": "mcp_tool", "server": "deepwork", "tool": "hook", "timeout": 10, "onFailure": "continue"}
    return {event: [{"hooks": [{**call, "input": {"event": event, "session": "${session_id}"}}]}] for event in events}


def called(log):
    return {json.loads(line)["event"] for line in log.read_text().splitlines()}


def test_the_versions_of_the_table_are_those_that_are_tested():
    pinned = (ROOT / "tools" / "clients.py").read_text()
    versions = {
        name: re.search(rf'"{name}": "([^"]+)"', pinned)[1] for name in ("@anthropic-ai/claude-code", "@openai/codex")
    }
    assert [*table()[1]] == [
        f"Claude Code {versions['@anthropic-ai/claude-code']}",
        f"Codex {versions['@openai/codex']}",
    ]


def test_claude_calls_the_tool_at_these_events(node_clients, tmp_path):
    desk = Desk.make(tmp_path, node_clients)
    log = tmp_path / "called"
    server = {"command": sys.executable, "args": [str(SERVER), str(log)]}
    (desk.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"deepwork": server}}))
    (desk.project / ".claude" / "settings.local.json").write_text(json.dumps({"hooks": hooks()}))
    model = RecordingModel()
    failing = {"id": "toolu_fails", "tool": "Bash", "input": {"command": "exit 3", "description": "It fails"}}
    task = {"description": "d", "prompt": "Say that you are done", "subagent_type": "general-purpose"}
    for turn in ({**START, "input": {}}, failing, {"id": "toolu_task", "tool": "Task", "input": task}):
        model.turns.put(turn)
    # Without a terminal it would send the first message before the server is there, and not try again.
    patience = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000", "CLAUDE_CODE_MAX_RETRIES": "0"}
    desk.environment.update(patience)
    words = ["claude", "-p", "--allowedTools", "mcp__deepwork,Bash,Task,Agent"]
    try:
        desk.run(*words, "--", "Do what the model says", url=model.url)
        at_a_start = called(log)
        desk.run(*words, "--continue", "--", "/compact", url=model.url)
        model.turns.put(LIMIT)
        with pytest.raises(subprocess.CalledProcessError):
            desk.run(*words, "--continue", "--", "Go on", url=model.url)
    finally:
        model.close()
    assert "SessionStart" not in at_a_start
    assert called(log) - {"SessionStart"} == next(iter(table()[1].values()))


def test_codex_calls_the_tool_at_these_events(node_clients, tmp_path):
    log = tmp_path / "called"
    start = {"namespace": "mcp__deepwork", "name": "start_workflow", "arguments": {}}
    failing = {"name": "exec_command", "arguments": {"cmd": "exit 3"}}
    model = ScriptedCodexModel([start, failing], lambda _: None, tokens=90_000)
    try:
        desk = ClientDesk.make("codex", tmp_path, node_clients, model.url)
        server = f'[mcp_servers.deepwork]\ncommand = "{sys.executable}"\nargs = ["{SERVER}", "{log}"]\n'
        (desk.project / ".codex" / "config.toml").write_text(server)
        (desk.project / ".codex" / "hooks.json").write_text(json.dumps({"hooks": hooks()}))
        desk.work("-c", "model_auto_compact_token_limit=1000")
    finally:
        model.close()
    assert called(log) == [*table()[1].values()][1]
