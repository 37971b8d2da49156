"""The agents of this plugin against the contract, with what the real programs have printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deepwork.api import open_context
from deepwork.ports.agent import LimitCause, Limited
from deepwork.programs.resets import reset_time
from deepwork.testing import AgentContract, PluginContract
from deepwork_run.agents.claude import ClaudeAgent
from deepwork_run.agents.codex import WORDS as CODEX_WORDS
from deepwork_run.agents.codex import CodexAgent
from deepwork_run.agents.refusals import refusal
from deepwork_run.settings import RunSettings

SAMPLES = Path(__file__).parent / "samples"
LIMIT_WORDS = "You've hit your usage limit. API Error: 429 rate_limit. Connection refused. Prompt is too long. /login"


class TestPlugin(PluginContract):
    plugin = "run"


def recorded(program, name):
    return (SAMPLES / program / f"{name}.jsonl").read_text().splitlines()


class TestClaudeAgent(AgentContract):
    @pytest.fixture
    def make_agent(self, project):
        return lambda program: ClaudeAgent(open_context("run", project.root), RunSettings(claude=program))

    def lines_of(self, situation):
        if situation == "usage-limit-until":
            soon = int((datetime.now(UTC) + timedelta(hours=2)).timestamp())
            return [line.replace("1795117874", str(soon)) for line in recorded("claude-2.1.327", situation)]
        if situation == "talk":
            return [line.replace("The end", LIMIT_WORDS) for line in recorded("claude-2.1.327", "done")]
        if situation == "unknown-error":
            text = "\n".join(recorded("claude-2.1.327", "usage-limit"))
            text = text.replace('"rate_limit"', '"strange"').replace("429", "418").replace("Request rejected", "Tea")
            return text.replace("rate limit", "pot").splitlines()
        return recorded("claude-2.1.327", situation)

    def spending(self):
        stream = recorded("claude-2.1.327", "done")
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


class TestCodexAgent(AgentContract):
    @pytest.fixture
    def make_agent(self, project):
        return lambda program: CodexAgent(open_context("run", project.root), RunSettings(codex=program))

    def lines_of(self, situation):
        if situation == "usage-limit-until":
            hour = (datetime.now().astimezone() + timedelta(hours=2)).strftime("%-I:%M %p")
            return [line.replace("7:24 PM", hour) for line in recorded("codex-0.169.0", situation)]
        if situation == "talk":
            return [line.replace("The end", LIMIT_WORDS) for line in recorded("codex-0.169.0", "done")]
        if situation == "unknown-error":
            lines = recorded("codex-0.169.0", "overload")
            return [line.replace("Selected model is at capacity", "It is a teapot") for line in lines]
        return recorded("codex-0.169.0", situation)

    def spending(self):
        return {"to the end": (recorded("codex-0.169.0", "done"), (200, 14, None))}


@pytest.mark.parametrize(
    "text",
    [
        "unexpected status 529 <unknown status code>: no, url: http://127.0.0.1:1/v1/responses",
        "unexpected status 503 Service Unavailable: no",
        "exceeded retry limit, last status: 502 Bad Gateway",
    ],
)
def test_a_server_of_codex_that_fails_is_waited_for(text):
    """Another start at once would be one more call to a server that cannot answer."""
    assert refusal(text, CODEX_WORDS) == Limited(None, LimitCause.OVERLOAD, text)


NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Claude AI usage limit reached|1795117874", datetime.fromtimestamp(1795117874, UTC)),
        ("You've hit your 5-hour limit · resets 7:51pm (UTC)", NOW.replace(hour=19, minute=52)),
        ("You've hit your limit · resets 3pm (Asia/Shanghai)", NOW.replace(day=20, hour=7, minute=1)),
        ("You've hit your limit · resets Nov 23 at 4pm (America/Recife)", NOW.replace(day=23, hour=19, minute=1)),
        ("You've hit your limit · resets Jan 2 at 12am (UTC)", datetime(2027, 1, 2, 0, 1, tzinfo=UTC)),
        ("or try again in 2 days 17 hours 14 minutes.", NOW + timedelta(days=2, hours=17, minutes=14)),
        ("Please try again in 11.054s.", NOW + timedelta(seconds=11.054)),
        ("You've hit your limit · resets 3pm (Nowhere/Land)", None),
        ("You've hit your limit · resets Feb 31 at 4pm (UTC)", None),
        ("You've hit your limit · resets 99pm (UTC)", None),
        ("try again in 9999999999999999999999 days", None),
        ("try again in . s", None),
        ("try again later", None),
    ],
)
def test_the_end_of_a_limit_is_read_from_its_words(text, expected):
    assert reset_time(text, NOW) == expected


def test_a_time_of_codex_is_that_of_this_machine(monkeypatch):
    local = NOW.astimezone()
    text = f"try again at {local + timedelta(hours=1):%-I:%M %p}."
    assert reset_time(text, NOW) == NOW + timedelta(hours=1, minutes=1)
    text = f"try again at {local + timedelta(days=2):%b %-d}th, 2026 {local:%-I:%M %p}."
    assert reset_time(text, NOW) == NOW + timedelta(days=2, minutes=1)
