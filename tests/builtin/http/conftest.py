from __future__ import annotations

import contextlib
import json
import signal
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from deepwork.testing.wire import PATIENCE


@pytest.fixture
def listen_with_routes(listen):
    """Start `deepwork serve` with routes such as plugins may add, and with other limits, named in upper case.

    A client may be as slow as the machine, unless the test is about that.
    """

    def listen_with_routes(transport, *arguments, **changed):
        limits = {"HEADER_SECONDS": PATIENCE, "BODY_SECONDS": PATIENCE, "WRITE_SECONDS": PATIENCE} | changed
        limits = " ".join(f"{name}={value}" for name, value in limits.items())
        return listen(transport, *arguments, program=[str(Path(__file__).parent / "data" / "serve.py")], LIMITS=limits)

    return listen_with_routes


@pytest.fixture
def token_file(tmp_path):
    """Write a token file, by default one of alice and bob, and give its path."""

    def write(text="alice alices-token-for-tests\nbob bobs-token-for-tests\n", mode=0o600):
        file = tmp_path / "tokens"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(mode)
        return str(file)

    return write


class Answer(NamedTuple):
    """The head of an answer."""

    status: int
    headers: dict[str, str]


class Line:
    """A connection on which every byte is ours."""

    def __init__(self, url):
        address = urlsplit(url)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=100)
        self.host = address.netloc
        self.rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """Send what the server may already refuse to read."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def ask(self, method, path, *headers, body=b"", version="1.1", host=True):
        """Send a request with these headers, given as they are written."""
        own = [f"Host: {self.host}"] if host else []
        lines = [f"{method} {path} HTTP/{version}", *own, *headers, "", ""]
        self.send("\r\n".join(lines).encode("latin-1") + body)

    def answer(self):
        """Read the head of the next answer; None if the connection is closed instead."""
        head = self._until(b"\r\n\r\n").decode("latin-1")
        if not head:
            return None
        first, *lines = head.strip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return Answer(int(first.split()[1]), {name.strip().lower(): value.strip() for name, _, value in pairs})

    def body(self, answer):
        """Read the body of an answer that says how long it is, or is the last of the connection."""
        length = answer.headers.get("content-length")
        while length is None or len(self.rest) < int(length):
            more = self._more()
            if not more:
                break
            self.rest += more
        size = len(self.rest) if length is None else int(length)
        body, self.rest = self.rest[:size], self.rest[size:]
        return body

    def is_closed(self):
        """Wait until the other side ends the connection."""
        while more := self._more():
            self.rest += more
        return True

    def frame(self):
        """Read one short frame of a WebSocket: its kind and its payload."""
        while len(self.rest) < 2 or len(self.rest) < 2 + self.rest[1]:
            more = self._more()
            assert more, "the connection was closed"
            self.rest += more
        size = 2 + self.rest[1]
        frame, self.rest = self.rest[:size], self.rest[size:]
        return frame[0] & 15, frame[2:]

    def _until(self, end):
        while end not in self.rest:
            more = self._more()
            if not more:
                return b""
            self.rest += more
        head, _, self.rest = self.rest.partition(end)
        return head

    def _more(self):
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""


@pytest.fixture
def dial():
    """Connect to a server, for raw requests."""
    with contextlib.ExitStack() as lines:
        yield lambda url: lines.enter_context(Line(url))


UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


@pytest.fixture
def upgrade():
    """Return the headers that ask for a WebSocket."""
    return UPGRADE


@pytest.fixture
def hello():
    """Return the first request of a client of the handshake era, and its headers."""
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).encode()
    return body, (
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
    )


@pytest.fixture
def log_of():
    """End a server, and give what it has logged since it listened."""

    def log_of(process):
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
        return process.stderr.read().splitlines()

    return log_of
