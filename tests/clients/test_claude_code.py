"""The real Claude Code, in an empty home, with a model on loopback that says what the journey wants."""

from __future__ import annotations

import json
import sys
import uuid
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from deepwork.testing import Refused

sys.path.insert(0, str(Path(__file__).parent))
from scripted_model import END, Model

pytestmark = [pytest.mark.anyio, pytest.mark.external, pytest.mark.timeout(600)]

PREFIX = "mcp__deepwork__"


class ClaudeAgent:
    """An agent whose calls are made by one `claude -p` after the other: a new one where Ctrl-C has ended the last."""

    def __init__(self, run, until, model, settings):
        self._run = run
        self._until = until
        self._model = model
        options = ["--output-format", "stream-json", "--verbose", "--mcp-config", settings, "--strict-mcp-config"]
        self._command = ["claude", "-p", "--allowedTools", "mcp__deepwork", *options, "--", "Do what the model says"]
        self._program = None

    async def tools(self):
        """What the first event says of our server, as soon as it is there."""
        program = await self._running()
        await self._until(lambda: "\n" in program.stdout)
        first = json.loads(program.stdout.partition("\n")[0])
        assert [(server["name"], server["status"]) for server in first["mcp_servers"]] == [("deepwork", "connected")]
        return [name.removeprefix(PREFIX) for name in first["tools"] if name.startswith(PREFIX)]

    async def call(self, tool, **arguments):
        program = await self._running()
        use = f"toolu_{uuid.uuid4().hex}"
        self._model.turns.put({"id": use, "tool": PREFIX + tool, "input": arguments})
        try:
            await self._until(lambda: use in self._model.results)
        except anyio.get_cancelled_exc_class():
            self._program = None
            await program.ctrl_c()
            raise
        answer = self._model.results[use]
        content = answer["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        if answer.get("is_error"):
            raise Refused(text)
        return json.loads(text)

    async def finish(self):
        """Let the model say that it is done."""
        if self._program:
            self._model.turns.put(END)
            assert await self._program.end() == 0, self._program.stdout

    async def _running(self):
        if self._program is None:
            self._model.begin()
            self._program = await self._run(*self._command)
        return self._program


@pytest.fixture
def model(monkeypatch):
    model = Model()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "stub")
    yield model
    model.close()


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_it_makes_the_journey(travel, on_path, run, until, model, tmp_path, transport):
    @asynccontextmanager
    async def connect(target):
        stdio = transport == "stdio"
        server = {"command": target[0], "args": target[1:]} if stdio else {"type": "http", "url": target}
        settings = tmp_path / "mcp.json"
        settings.write_text(json.dumps({"mcpServers": {"deepwork": server}}))
        agent = ClaudeAgent(run, until, model, settings)
        yield agent
        await agent.finish()

    await travel(transport, connect)
