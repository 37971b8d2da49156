"""Models on loopback for Codex and the Gemini CLI: each makes some calls, then says that it is done."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARGUMENTS = {"goal": "newcomers", "job_name": "project_tour", "workflow_name": "write_tour"}
# What Codex answers while a server is not there yet, for which it does not wait. Then the call is made again.
NO_SERVER = "unsupported call"
REMINDER = "of deepwork is not finished"


class ForgetfulModel:
    """Answers the first requests with calls of tools, and every later one with the end.

    Attributes:
        calls: The calls that it makes of Codex, one after the other; of the Gemini CLI it starts a workflow.
        requests: What was asked, in order: the messages of the conversation until then.
        url: Where it listens.
    """

    def __init__(self, calls: Sequence[tuple[str, dict[str, Any]]] = (("start_workflow", ARGUMENTS),)) -> None:
        self.calls = calls
        self.requests: list[list[Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                is_gemini = "contents" in body
                messages = body["contents" if is_gemini else "input"]
                model.requests.append(messages)
                with suppress(ConnectionError):
                    for event in model.gemini(messages) if is_gemini else model.events(messages):
                        name = f"event: {event['type']}\n" if "type" in event else ""
                        self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def events(self, messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Write the next turn for Codex."""
        return _responses(_turn(messages, self.calls))

    def gemini(self, messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Write the next turn for the Gemini CLI: a workflow is started, and that is all."""
        parts = [part for message in messages for part in message.get("parts", [])]
        if any("functionResponse" in part for part in parts):
            return _gemini({"text": "The end"})
        return _gemini({"functionCall": {"name": "mcp_deepwork_start_workflow", "args": ARGUMENTS}})

    @property
    def has_result(self) -> bool:
        """Whether the tool has answered with its first step."""
        return "begin_step" in json.dumps(self.requests[-1:])

    @property
    def reminders(self) -> int:
        """How often the last conversation has the reminder."""
        return json.dumps(self.requests[-1:]).count(REMINDER)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class ScriptedCodexModel(ForgetfulModel):
    """Answers the requests of Codex or the Gemini CLI with these calls, one after the other, and then with the end.

    Attributes:
        before: Called with the number of each request, before it is answered.
        tokens: What each request is said to have read.
    """

    def __init__(self, calls: Sequence[dict[str, Any]], before: Callable[[int], None], tokens: int = 1) -> None:
        super().__init__()
        self._calls = [*calls]
        self._before = before
        self._tokens = tokens

    def events(self, messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Write the next turn for Codex; a request for a summary gets one."""
        self._before(len(self.requests))
        is_summary = "CONTEXT CHECKPOINT COMPACTION" in json.dumps(messages[-1])
        yield from _responses(None if is_summary else self.next_call(messages), self._tokens)

    def next_call(self, _messages: Sequence[Any]) -> dict[str, Any] | None:
        """Return the next call; None at the end."""
        return codex_call(self._calls.pop(0)) if self._calls else None

    def gemini(self, messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """Write the next turn for the Gemini CLI."""
        self._before(len(self.requests))
        yield from _gemini({"functionCall": self._calls.pop(0)} if self._calls else {"text": "The end"})


def codex_call(call: dict[str, Any]) -> dict[str, Any]:
    """Write a call as the Responses API does."""
    about = {"type": "function_call", "id": "fc_1", "call_id": uuid.uuid4().hex}
    return {**about, **call, "arguments": json.dumps(call["arguments"])}


def _turn(messages: Sequence[Any], calls: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any] | None:
    """Return the next call of a tool; None if all have answered."""
    outputs = [str(message.get("output")) for message in messages if message.get("type") == "function_call_output"]
    answered = sum(not output.startswith(NO_SERVER) for output in outputs)
    if outputs and outputs[-1].startswith(NO_SERVER):
        time.sleep(1)
    if answered >= len(calls):
        return None
    name, arguments = calls[answered]
    number = len(outputs) + 1
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
    return {**call, "namespace": "mcp__deepwork", "name": name, "arguments": json.dumps(arguments)}


def _responses(item: dict[str, Any] | None, tokens: int = 1) -> Iterator[dict[str, Any]]:
    """Write one turn as the Responses API streams it: a call, or the end."""
    if item is None:
        content = [{"type": "output_text", "text": "The end"}]
        item = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": content}
    usage = {"input_tokens": tokens, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
    response = {"id": f"resp_{uuid.uuid4().hex}", "object": "response", "usage": {**usage, "total_tokens": tokens + 1}}
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {**response, "status": "completed", "output": [item]}}


def _gemini(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write one turn as the Gemini API streams it."""
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    yield {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "scripted",
    }
