"""The real Codex, Gemini CLI and opencode, set up by `deepwork connect`, with models that forget their step."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from client_desks import ClientDesk
from scripted_models import ForgetfulModel

pytestmark = [pytest.mark.external, pytest.mark.timeout(600)]


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_its_hooks_run_and_remind_its_agent_once(node_clients, tmp_path, client):
    model = ForgetfulModel()
    try:
        desk = ClientDesk.make(client, tmp_path, node_clients, model.url)
        printed = desk.work()
        assert model.has_result, printed
        # The call, the end, the reminder: and then the end is accepted.
        assert (len(model.requests), model.reminders) == (3, 1), printed
    finally:
        model.close()


@pytest.mark.parametrize(
    ("client", "word"), [("codex", "enabled"), ("gemini", "serve --path ."), ("opencode", "connected")]
)
def test_it_reads_the_entry_that_connect_writes(node_clients, tmp_path, client, word):
    # Gemini tries the server for a moment only, and says "Disconnected" on a machine that is busy.
    desk = ClientDesk.make(client, tmp_path, node_clients)
    printed = desk.run(client, "mcp", "list")
    assert "deepwork" in printed
    assert word in printed
