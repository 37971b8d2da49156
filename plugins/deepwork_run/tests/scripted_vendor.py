"""Models on loopback for the real Claude Code, Codex and Gemini CLI: they report the open step, and keep books.

The conversation says what is open: the prompt names the session, and the last reply of the server the step.
"""

from __future__ import annotations

import json
import os
import re
import threading
import uuid
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# How Codex is told of a vendor that it does not know.
CODEX_CONFIG = """\
model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


class Vendor:
    """Answers the requests of one program.

    Attributes:
        url: Where it listens.
        requests: When each request of a conversation came, and what was spent by it: read and written.
        steps: How many steps one conversation reports; then it ends.
        refuses: The answer to every request: status, headers and JSON; None if it works.
        refused: The requests that were refused, as they came.
        first_calls: Other calls that a conversation begins with: the tool and its input.
        closes: Whether each connection is closed without an answer.
        prompts: What the conversations began with, and how many characters each of their requests had.
        bodies: What the program has sent, as it came.
    """

    def __init__(self, steps=99):
        self.steps, self.refuses, self.closes = steps, None, False
        self.requests = []
        self.prompts = {}
        self.first_calls = []
        self.refused = []
        self.bodies = []
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_HEAD(self):
                self.send_response(200)
                self.end_headers()

            def do_GET(self):
                self.send_response(404)
                self.end_headers()

            def do_POST(self):
                content = self.rfile.read(int(self.headers["content-length"]))
                vendor.bodies.append(content.decode())
                body = json.loads(content)
                vendor.note(body)
                if vendor.closes:
                    vendor.requests.append((0, 0))
                    self.close_connection = True
                    return
                if vendor.refuses:
                    vendor.requests.append((0, 0))
                    vendor.refused.append(content.decode())
                    status, headers, document = vendor.refuses
                    content = json.dumps(document).encode()
                    self.send_response(status)
                    for name, value in {"content-length": str(len(content)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)
                    return
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                number = len(vendor.requests)
                spent = (100 + number, 10 + number)
                vendor.requests.append(spent)
                answer = _claude if "messages" in body else _gemini if "contents" in body else _codex
                with suppress(ConnectionError):
                    for event in answer(body, vendor.steps, spent, vendor.first_calls):
                        name = f"event: {event['type']}\n" if "type" in event else ""
                        self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def note(self, body):
        """Keep what a conversation begins with, and how long each of its requests was."""
        items = body.get("messages") or body.get("input") or []
        texts = [json.dumps(item.get("content"), ensure_ascii=False) for item in items if item.get("role") == "user"]
        # A request for a summary may begin with results, without the prompt.
        if prompt := next((text for text in texts if "finished_step" in text and "tool_result" not in text), None):
            self.prompts.setdefault(prompt, []).append(len(json.dumps(items, ensure_ascii=False)))

    @property
    def books(self):
        """What was read and written in all requests."""
        return tuple(sum(spent[index] for spent in self.requests) for index in (0, 1))

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def make_home(home, programs, claude, codex):
    """Make a home without an account, in which programs ask these vendors; return the variables of that home."""
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text(CODEX_CONFIG.format(url=codex.url))
    return {
        "HOME": str(home),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "ANTHROPIC_BASE_URL": claude.url,
        "OPENAI_API_KEY": "stub",
        "CLAUDE_CODE_MAX_RETRIES": "0",
    }


def limit(vendor, until):
    """Return how a vendor refuses after its limit."""
    if vendor == "claude":
        names = ("unified-reset", "unified-5h-reset")
        headers = {f"anthropic-ratelimit-{name}": str(until) for name in names}
        headers |= {f"anthropic-ratelimit-unified-{name}": "rejected" for name in ("status", "5h-status")}
        headers |= {"anthropic-ratelimit-unified-representative-claim": "five_hour", "x-should-retry": "false"}
        error = {"type": "rate_limit_error", "message": "This would exceed your rate limit."}
        return 429, headers, {"type": "error", "error": error}
    error = {"type": "usage_limit_reached", "message": "limit", "plan_type": "plus", "resets_at": until}
    return 429, {}, {"error": error}


def full_context(vendor):
    """Return how a vendor refuses a conversation that has become too long."""
    if vendor == "claude":
        error = {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}
        return 400, {}, {"type": "error", "error": error}
    error = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
    return 400, {}, {"error": error}


def _next(text, results, steps):
    """Return the arguments of the next call; None if the conversation ends."""
    session_id = re.search(r'session_id=\\?"(\w+)\\?"', text)[1]
    if not results:
        return {"session_id": session_id, "step_id": "?", "outputs": {}}
    last = results[-1]
    step = re.search(r'\\?"step_id\\?":\s*\\?"(\w+)\\?"', last)
    if "workflow_complete" in last or len(results) > steps or not step:
        return None
    return {"session_id": session_id, "step_id": step[1], "outputs": {f"{step[1]}.md": f"{step[1]}.md"}}


def _claude(body, steps, spent, first_calls):
    blocks = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    texts = [json.dumps(message["content"]) for message in body["messages"] if message["role"] == "user"]
    results = [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]
    name, arguments = "mcp__deepwork__finished_step", None
    if body.get("tools") and len(results) < len(first_calls):
        name, arguments = first_calls[len(results)]
    elif body.get("tools"):
        arguments = _next(" ".join(texts), results[len(first_calls) :], steps)
    usage = {"input_tokens": spent[0], "output_tokens": 1}
    about = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
    }
    yield {"type": "message_start", "message": {**about, "content": [], "usage": usage, "stop_reason": None}}
    if arguments is None:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "The end"}
    else:
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "end_turn" if arguments is None else "tool_use", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {**usage, "output_tokens": spent[1]}}
    yield {"type": "message_stop"}


def _codex(body, steps, spent, first_calls):
    results = [json.dumps(item["output"]) for item in body["input"] if item.get("type") == "function_call_output"]
    about = {"namespace": "mcp__deepwork", "name": "finished_step"}
    if len(results) < len(first_calls):
        name, arguments = first_calls[len(results)]
        about = {"name": name}
    else:
        arguments = _next(json.dumps(body["input"]), results[len(first_calls) :], steps)
    if arguments is None:
        content = [{"type": "output_text", "text": "The end"}]
        item = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": content}
    else:
        call = {"type": "function_call", "id": f"fc_{uuid.uuid4().hex}", "call_id": f"call_{uuid.uuid4().hex}"}
        item = {**call, "arguments": json.dumps(arguments), **about}
    usage = {"input_tokens": spent[0], "output_tokens": spent[1], "total_tokens": sum(spent)}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    response = {"id": f"resp_{uuid.uuid4().hex}", "object": "response", "usage": {**usage, **details}}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}}


def _gemini(_body, _steps, spent, _first_calls):
    """Write the end, as the Gemini API streams it."""
    usage = {"promptTokenCount": spent[0], "candidatesTokenCount": spent[1], "totalTokenCount": sum(spent)}
    candidate = {"content": {"role": "model", "parts": [{"text": "The end"}]}, "finishReason": "STOP", "index": 0}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
