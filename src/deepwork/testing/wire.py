"""Clients that speak JSON-RPC without a client library.

A library sends nothing malformed, hides what the server wrote, and takes time of its own. `StdioWire` speaks JSON lines
to a process and `HttpWire` posts to an address. Both make the handshake, number requests and wait for their answers;
besides, they send any bytes.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self
from urllib.parse import urlsplit

from deepwork.testing.project import Mapped, Refused

# How long tests wait: it keeps a test from hanging, and no machine is too slow for it.
PATIENCE = 240.0
CLIENT = {"name": "deepwork.testing", "version": "1"}
LEGACY, MODERN = "2025-11-25", "2026-07-28"
HELLO: Mapped = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
ENVELOPE: Mapped = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}

Mode = Literal["legacy", "modern"]
RequestId = int | str | None

_EVENT = re.compile(r"^data: ?(.+)$", re.MULTILINE)
_LISTENING = re.compile(r"listening on (http://\S+)")


class Gone(Exception):
    """The server went away before it answered."""


def start_server(
    root: Path, *options: str, env: Mapping[str, str] | None = None, log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start `deepwork serve` on a project.

    Args:
        root: The folder of the project.
        options: Further options of the command.
        env: Variables besides those of this process.
        log: The file to which stderr is appended; `server.log` in the project if not given.
    """
    with (log or root / "server.log").open("ab") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "deepwork", "serve", "--path", str(root), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **(env or {})},
        )


def address_of(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until a server that was started with `--transport http` listens, and give its address.

    Raises:
        Gone: It ended instead, or does not listen.
    """
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        if match := _LISTENING.search(log.read_text(errors="replace")):
            return match[1]
        time.sleep(0.02)
    raise Gone(f"the server does not listen:\n{log.read_text(errors='replace')[-2000:]}")


def result_of(answer: Mapped) -> Mapped:
    """Return the result in an answer; of a tool call its structured content.

    Raises:
        Refused: It is an error.
    """
    result = answer.get("result")
    if result is None:
        raise Refused(json.dumps(answer.get("error")))
    if result.get("isError"):
        raise Refused(result["content"][0]["text"])
    return dict(result.get("structuredContent", result))


class Wire(ABC):
    """A client of one server. `legacy` begins with a handshake; in `modern` every request stands for itself."""

    def __init__(self, mode: Mode = "legacy") -> None:
        self.mode = mode
        self._numbers = itertools.count(1)

    @abstractmethod
    def request(self, method: str, **params: Any) -> Mapped:
        """Send a request and return its whole answer, which may be an error.

        Raises:
            Gone: There was no answer.
        """

    @abstractmethod
    def notify(self, method: str, **params: Any) -> None:
        """Send a message that has no answer."""

    def ask(self, method: str, **params: Any) -> Mapped:
        """Send a request and give its result.

        Raises:
            Refused: It was answered with an error.
            Gone: It was not answered.
        """
        return result_of(self.request(method, **params))

    def call(self, tool: str, **arguments: Any) -> Mapped:
        """Call a tool and give its structured content; raises as `ask` does."""
        return self.ask("tools/call", name=tool, arguments=arguments)

    def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that has to refuse, and give the error's text."""
        try:
            answer = self.call(tool, **arguments)
        except Refused as error:
            return str(error)
        raise AssertionError(f"{tool} was to refuse, but answered {answer}")

    def greet(self) -> Mapped:
        """Begin as clients do, and give what the server says of itself."""
        if self.mode == "modern":
            return self.ask("server/discover")
        hello = self.ask("initialize", **HELLO)
        self.notify("notifications/initialized")
        return hello

    def message(self, method: str, params: Mapped) -> Mapped:
        """Make a request with the next number."""
        if self.mode == "modern":
            params = {"_meta": ENVELOPE, **params}
        return {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}


class StdioWire(Wire):
    """A client of a process that speaks JSON lines. Threads may share it.

    Attributes:
        process: The server.
        lines: Every line that it has written so far.
    """

    def __init__(self, process: subprocess.Popen[Any], *, mode: Mode = "legacy") -> None:
        super().__init__(mode)
        self.process = process
        self.lines: list[bytes] = []
        self._stdin = _binary(process.stdin)
        self._stdout = _binary(process.stdout)
        self._lock = threading.Lock()
        self._waiting: dict[RequestId, Future[Mapped]] = {}
        self._is_gone = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def unanswered(self) -> int:
        """Count the requests that still wait for an answer."""
        return len(self._waiting)

    def request(self, method: str, **params: Any) -> Mapped:
        """Send a request and give its whole answer."""
        return self.send(method, **params).result(PATIENCE)

    def send(self, method: str, **params: Any) -> Future[Mapped]:
        """Send a request without waiting; the future gives the whole answer, or raises `Gone`."""
        return self.send_message(self.message(method, params))

    def send_message(self, message: Mapped) -> Future[Mapped]:
        """Send a request that `message` made, if its `id` is needed, such as to cancel it."""
        return self.post(json.dumps(message).encode(), message["id"])

    def notify(self, method: str, **params: Any) -> None:
        """Send a message that has no answer."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    def post(self, line: bytes, request_id: RequestId) -> Future[Mapped]:
        """Write any line; the future gives the answer that names this id."""
        future: Future[Mapped] = Future()
        with self._lock:
            if self._is_gone:
                raise Gone
            self._waiting[request_id] = future
        self.write(line)
        return future

    def write(self, line: bytes) -> None:
        """Write any line, and wait for nothing; a server that has gone does not read it."""
        with suppress(OSError, ValueError), self._lock:
            self._stdin.write(line + b"\n")
            self._stdin.flush()

    def close(self) -> int:
        """Close stdin, read all that the server still writes, and give its exit code."""
        with suppress(OSError), self._lock:
            self._stdin.close()
        code: int = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def _read(self) -> None:
        with self._stdout:
            for line in self._stdout:
                if not line.endswith(b"\n"):
                    break  # The server died while it wrote, so this answer has not arrived.
                self.lines.append(line)
                with suppress(ValueError):
                    self._settle(json.loads(line))
        with self._lock:
            self._is_gone = True
            waiting = [*self._waiting.values()]
            self._waiting.clear()
        for future in waiting:
            future.set_exception(Gone())

    def _settle(self, message: Any) -> None:
        if not isinstance(message, dict):
            return
        with self._lock:
            future = self._waiting.pop(message.get("id"), None)
        if future:
            future.set_result(message)


@dataclass(frozen=True)
class HttpAnswer:
    """What a posted body was answered with."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def messages(self) -> list[Mapped]:
        """The messages in it: one in a JSON body, any number in a stream of events."""
        bodies = [self.text]
        if self.headers.get_content_type() == "text/event-stream":
            bodies = _EVENT.findall(self.text)
        return [json.loads(body) for body in bodies if body.strip()]


class HttpWire(Wire):
    """A client of a server that listens, on one connection that stays open. Threads need one each."""

    def __init__(self, url: str, *, mode: Mode = "legacy", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(mode)
        address = urlsplit(url)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=PATIENCE)
        self._path = address.path + (f"?{address.query}" if address.query else "")
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": MODERN if mode == "modern" else LEGACY,
            **(headers or {}),
        }

    def __enter__(self) -> Self:
        """Use it in a `with` block, which closes the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def request(self, method: str, **params: Any) -> Mapped:
        """Post a request and return its whole answer.

        Raises:
            Refused: The status says that the body was not taken.
            Gone: There was no answer.
        """
        message = self.message(method, params)
        named = {"Mcp-Name": str(params["name"])} if "name" in params else {}
        answer = self.post(json.dumps(message).encode(), **{"Mcp-Method": method, **named})
        for item in self._accepted(answer).messages:
            if item.get("id") == message["id"]:
                return item
        raise Gone

    def notify(self, method: str, **params: Any) -> None:
        """Post a message that has no answer."""
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
        self._accepted(self.post(body, **{"Mcp-Method": method}))

    def post(self, body: bytes, **headers: str) -> HttpAnswer:
        """Post any body, with headers besides those of the wire.

        Raises:
            Gone: There was no answer.
        """
        try:
            self._connection.request("POST", self._path, body, {**self.headers, **headers})
            response = self._connection.getresponse()
            text = response.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Gone(repr(error)) from error
        if session_id := response.headers.get("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session_id
        return HttpAnswer(response.status, response.headers, text)

    def close(self) -> None:
        """Close the connection; the next post opens another one."""
        self._connection.close()

    @staticmethod
    def _accepted(answer: HttpAnswer) -> HttpAnswer:
        if answer.status == http.client.SERVICE_UNAVAILABLE:
            raise Gone("the server is ending, or has too much to do")
        # An error of the protocol comes as a message too, which tells more than its status.
        if answer.status >= http.client.BAD_REQUEST and not answer.text.startswith("{"):
            raise Refused(f"status {answer.status}: {answer.text[:300]}")
        return answer


def _binary(stream: IO[Any] | None) -> IO[bytes]:
    assert stream, "the process was not started with pipes"
    # Below the text of a process that was started with `text=True` are its bytes.
    return getattr(stream, "buffer", stream)
