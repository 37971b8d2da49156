"""The real Claude Code, in an empty home, with a model on loopback that says what the journey wants."""

from __future__ import annotations

import json
import queue
import threading
import uuid
from contextlib import asynccontextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest

from deepwork.testing import Refused

pytestmark = [pytest.mark.anyio, pytest.mark.external, pytest.mark.timeout(600)]

PREFIX = "mcp__deepwork__"
END = {"text": "The end"}


class Model:
    """Answers each request with the next turn that it is given, as the API streams it."""

    def __init__(self):
        self.turns = queue.Queue()
        self.results = {}
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.send_response(200)
                self.end_headers()

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                turn = model.next_turn(body) if body.get("tools") else {"text": "ok"}  # the rest is small talk
                with suppress(ConnectionError):
                    for event in _events(turn):
                        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next_turn(self, body):
        """Put down what the tools have answered, and wait for what to do next."""
        contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        for block in [block for content in contents for block in content if block["type"] == "tool_result"]:
            self.results[block["tool_use_id"]] = block
        return self.turns.get()

    def begin(self):
        """Begin another conversation; whoever still waits in the last one is told that it is over."""
        last, self.turns = self.turns, queue.Queue()
        last.put(END)

    def close(self):
        self.turns.put(END)
        self.server.shutdown()
        self.server.server_close()


def _events(turn):
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "scripted", "content": [], "usage": usage}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    if "text" in turn:
        block, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn["text"]}, "end_turn"
    else:
        block = {"type": "tool_use", "id": turn["id"], "name": turn["tool"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn["input"])}
        stop = "tool_use"
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


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
