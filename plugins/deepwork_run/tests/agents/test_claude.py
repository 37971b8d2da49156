"""Claude Code against the contract of agents, with what the real program has printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deepwork.api import open_context
from deepwork.ports.agent import Ended, Failed
from deepwork.testing import AgentContract, CliScript
from deepwork_run.agents.claude import ClaudeAgent
from deepwork_run.settings import RunSettings

SAMPLES = Path(__file__).parents[1] / "samples" / "claude-2.1.327"
LIMIT_WORDS = "You've hit your usage limit. API Error: 429 rate_limit. Connection refused. Prompt is too long. /login"


def recorded(name):
    return (SAMPLES / f"{name}.jsonl").read_text().splitlines()


class TestClaudeAgent(AgentContract):
    @pytest.fixture
    def make_agent(self, project):
        return lambda program: ClaudeAgent(open_context("run", project.root), RunSettings(claude=program))

    def lines_of(self, situation):
        if situation == "usage-limit-until":
            soon = int((datetime.now(UTC) + timedelta(hours=2)).timestamp())
            return [line.replace("1795117874", str(soon)) for line in recorded(situation)]
        if situation == "talk":
            return [line.replace("The end", LIMIT_WORDS) for line in recorded("done")]
        if situation == "unknown-error":
            text = "\n".join(recorded("usage-limit"))
            text = text.replace('"rate_limit"', '"strange"').replace("429", "418").replace("Request rejected", "Tea")
            return text.replace("rate limit", "pot").splitlines()
        return recorded(situation)

    def spending(self):
        stream = recorded("done")
        *messages, result = stream
        # A request that is no part of the conversation, such as a title, shows in the result alone.
        more = json.loads(result)
        more["modelUsage"]["claude-haiku-5"] = {"inputTokens": 30, "outputTokens": 5, "cacheReadInputTokens": 4}
        started = json.loads(next(line for line in messages if "message_start" in line))
        started["event"]["message"]["usage"] = {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 2}
        return {
            "to the end": (stream, (2, 2, json.loads(result)["total_cost_usd"])),
            "cut before the result": (messages, (2, 2, None)),
            "with what is not of the conversation": ([*messages, json.dumps(more)], (36, 7, more["total_cost_usd"])),
            "with what comes from a cache": ([json.dumps(started)], (10, 2, None)),
            "one message in two parts": ([messages[3], messages[3], messages[3]], (1, 1, None)),
        }

    async def test_a_program_that_has_not_reached_our_server_is_ended(self, agent, cli, task):
        """It would work with its other tools alone, and report no step."""
        cli.plays(CliScript(tuple(recorded("no-server")), hangs=True))
        events = [event async for event in agent.start(task)]
        assert [type(event) for event in events] == [Failed, Ended]
        assert cli.survivors() == []
        assert cli.calls[0]["environment"]["MCP_TIMEOUT"] == "60000"
