"""A question that a client answers over HTTP shows no person: a program that has the token can answer yes itself."""

from __future__ import annotations

import json
import os
import sys

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport

from deepwork.paths.user_folders import user_config_file
from deepwork.testing import Agent

pytestmark = pytest.mark.anyio


async def yes(message, response_type, params, context):
    return ElicitResult(action="accept", content={"allow": True})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_yes_over_http_is_noted_as_the_clients_and_passes_no_strict_gate(
    reviewed, listen, token_file, history, stored, deepwork, mode
):
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    gate = {
        "strict": True,
        "runner": "judge",
        "commands": {"judge": {"run": [sys.executable, "-c", "raise SystemExit"]}},
    }
    file.write_text(json.dumps({"quality_gate": gate}))
    _, url = listen("http", "--token-file", token_file())
    way = StreamableHttpTransport(url, headers={"Authorization": "Bearer alices-token-for-tests"})
    async with Client(way, mode=mode, elicitation_handler=yes) as client:
        agent = Agent(client)
        session_id = (await agent.start())["session_id"]
        report = {"outputs": {"a.md": "a.md"}, "session_id": session_id}
        for _ in range(2):
            text = await agent.refused("finished_step", **report, quality_review_override_reason="It is fine")
            assert "over HTTP it shows no person" in text
    assert stored()["step_progress"]["a"]["completed_at"] is None
    assert history("override") == []
    answer = {"by": "client", "client": "mcp 0.1.0", "principal": "alice"}
    assert history("override_asked") == [{"reason": "It is fine", "files": ["a.md"], **answer}]
    assert "not finished" in await deepwork("sessions", "verify", session_id, code=1)
    inbox = await deepwork("inbox", "--json")
    assert "The client mcp 0.1.0 has answered yes; over HTTP that shows no person." in inbox
