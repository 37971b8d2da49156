"""A model on loopback that says what a script wants, for the real Claude Code."""

from __future__ import annotations

import json
import queue
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

END = {"text": "The end"}


class Model:
    """Answers each request with the next turn that it is given, as the API streams it."""

    def __init__(self) -> None:
        self.turns: queue.Queue[dict[str, Any]] = queue.Queue()
        self.results: dict[str, Any] = {}
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                turn = model.next_turn(body) if body.get("tools") else {"text": "ok"}  # the rest is small talk
                if "error" in turn:
                    self.refuse(turn["error"])
                    return
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                with suppress(ConnectionError):
                    for event in _events(turn):
                        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

            def refuse(self, error: dict[str, Any]) -> None:
                content = json.dumps({"type": "error", "error": error}).encode()
                self.send_response(429)
                self.send_header("x-should-retry", "false")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next_turn(self, body: dict[str, Any]) -> dict[str, Any]:
        """Put down what the tools have answered, and wait for what to do next."""
        contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
        for block in [block for content in contents for block in content if block["type"] == "tool_result"]:
            self.results[block["tool_use_id"]] = block
        return self.turns.get()

    def begin(self) -> None:
        """Begin another conversation; a client that still waits in the last one is told that it is over."""
        last, self.turns = self.turns, queue.Queue()
        last.put(END)

    def close(self) -> None:
        self.turns.put(END)
        self.server.shutdown()
        self.server.server_close()


def _events(turn: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": turn.get("input_tokens", 1), "output_tokens": 1}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [],
        "usage": usage,
    }
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
