"""Speaks to servers over pipes and HTTP with as little of its own as can be, and the same for all."""

from __future__ import annotations

import json
import os
import select
import selectors
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

PATIENCE = 60.0
LOG_LINES = 8
READ_SIZE = 1 << 20
CPU_CLOCK_OF_PROCESS = 2

Params = dict[str, Any]


class ContestantError(Exception):
    """A server that cannot be measured: it does not start, it dies, or it answers with an error."""


class Era(StrEnum):
    """How a client begins: with a handshake, or with every request speaking for itself."""

    HANDSHAKE = "2025-11-25"
    STATELESS = "2026-07-28"


CLIENT = {"name": "bench", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": Era.STATELESS.value,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Answer:
    """A reply, with the moment when it had arrived whole and, where one call was waited for, its seconds."""

    number: int | None
    arrived: float
    size: int
    message: dict[str, Any]
    seconds: float = 0.0


def resident_mib(pid: int) -> float | None:
    """Return the resident memory of a process; None if it has ended."""
    resident = Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2]
    return int(resident.split()[0]) / 1024 if resident else None


@dataclass(frozen=True)
class Cost:
    """What something took, in seconds."""

    wall: float
    cpu: float


class Process:
    """A started command. Its memory and time are those of this one process, without its children."""

    def __init__(
        self, command: Sequence[str], *, folder: Path, env: Mapping[str, str], log: Path, piped: bool = True
    ) -> None:
        self.shown = " ".join(command)
        self._log = log
        self.spawned = time.perf_counter()
        try:
            with log.open("wb") as errors:
                self.popen = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=env,
                    stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if piped else errors,
                    stderr=errors,
                    bufsize=0,
                )
        except OSError as error:
            raise ContestantError(f"`{self.shown}` cannot be started: {error.strerror}") from None

    def cpu(self) -> float:
        """Return the seconds of processor time that all its threads have used so far."""
        try:
            return time.clock_gettime((~self.popen.pid << 3) | CPU_CLOCK_OF_PROCESS)
        except OSError:
            raise self.death() from None

    def mib(self) -> float:
        """Return its resident memory."""
        resident = resident_mib(self.popen.pid)
        if resident is None:
            raise self.death()
        return resident

    def end(self) -> Cost:
        """Close its stdin and wait until it is gone.

        Raises:
            ContestantError: It was gone already, or its exit code is not 0.
        """
        if os.waitid(os.P_PID, self.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            raise self.death()
        before, start = self.cpu(), time.perf_counter()
        assert self.popen.stdin
        self.popen.stdin.close()
        total = self.wait()
        ended = time.perf_counter()
        if self.popen.returncode:
            raise self.death()
        return Cost(ended - start, total - before)

    def wait(self) -> float:
        """Wait until it is gone, and return the processor time of its whole life.

        Raises:
            ContestantError: It did not end.
        """
        impatience = threading.Timer(PATIENCE, self.popen.kill)
        impatience.start()
        _, status, usage = os.wait4(self.popen.pid, 0)
        was_patient = impatience.is_alive()
        impatience.cancel()
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        self._close()
        if not was_patient:
            raise self.complaint(f"did not end within {PATIENCE:g} s")
        return usage.ru_utime + usage.ru_stime

    def kill(self) -> None:
        """End it at once, if it still runs."""
        if self.popen.returncode is None:
            self.popen.kill()
            self.popen.wait()
        self._close()

    def complaint(self, event: str) -> ContestantError:
        """Return the error with the last lines that the server has written to stderr."""
        last = self.log_text().splitlines()[-LOG_LINES:]
        return ContestantError("\n  ".join([f"`{self.shown}` {event}", *last]))

    def log_text(self) -> str:
        """Return what the server has written to stderr so far."""
        return self._log.read_text(errors="replace")

    def death(self) -> ContestantError:
        """Make the error of a server that has gone away."""
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(1)
        return self.complaint(f"died (exit code {self.popen.returncode})")

    def _close(self) -> None:
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe:
                pipe.close()


class Connection(ABC):
    """One client of a server."""

    def __init__(self, process: Process, era: Era) -> None:
        self.process = process
        self.era = era
        self._number = 0

    @abstractmethod
    def fileno(self) -> int:
        """Return the descriptor to wait for."""

    @abstractmethod
    def receive(self) -> list[Answer]:
        """Read what is there, and return the answers that are whole now."""

    @abstractmethod
    def _send(self, message: dict[str, Any]) -> None:
        """Write a message."""

    @abstractmethod
    def _notify(self, message: dict[str, Any]) -> None:
        """Write a message that has no answer."""

    def submit(self, method: str, params: Params) -> int:
        """Send a request, and return its number."""
        self._number += 1
        if self.era is Era.STATELESS:
            params = {**params, "_meta": ENVELOPE}
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def ask(self, method: str, params: Params) -> Answer:
        """Send a request and wait for its answer."""
        start = time.perf_counter()
        number = self.submit(method, params)
        while True:
            self.wait_until_readable()
            for answer in self.receive():
                if answer.number == number:
                    self.result(answer)
                    return Answer(number, answer.arrived, answer.size, answer.message, answer.arrived - start)

    def call(self, tool: str, arguments: Params) -> Answer:
        """Call a tool and wait for its answer."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def result(self, answer: Answer) -> dict[str, Any]:
        """Return the result in an answer.

        Raises:
            ContestantError: It is an error.
        """
        result = answer.message.get("result", {"isError": True})
        if result.get("isError"):
            error = json.dumps(answer.message.get("error") or result.get("content"))
            raise self.process.complaint(f"answered with an error: {error[:500]}")
        return dict(result)

    def greet(self) -> None:
        """Begin as agents do."""
        if self.era is Era.STATELESS:
            self.ask("server/discover", {})
            return
        self.ask("initialize", {"protocolVersion": self.era.value, "capabilities": {}, "clientInfo": CLIENT})
        self._notify({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def wait_until_readable(self) -> None:
        """Wait until there is something to read.

        Raises:
            ContestantError: Nothing came for a long time.
        """
        waiting = select.poll()
        waiting.register(self, select.POLLIN)
        if not waiting.poll(PATIENCE * 1000):
            raise self.process.complaint(f"has not answered for {PATIENCE:g} s")


class PipeConnection(Connection):
    """JSON lines over stdin and stdout."""

    def __init__(self, process: Process, era: Era) -> None:
        super().__init__(process, era)
        assert process.popen.stdin
        assert process.popen.stdout
        self._stdin, self._stdout = process.popen.stdin, process.popen.stdout
        self._begun: list[bytes] = []

    def fileno(self) -> int:
        """Return the server's stdout."""
        return self._stdout.fileno()

    def receive(self) -> list[Answer]:
        """Read lines; an unfinished one is kept for the next time."""
        chunk = os.read(self.fileno(), READ_SIZE)
        arrived = time.perf_counter()
        if not chunk:
            raise self.process.death()
        self._begun.append(chunk)
        if b"\n" not in chunk:
            return []
        *lines, unfinished = b"".join(self._begun).split(b"\n")
        self._begun = [unfinished]
        return [_answer(line, arrived) for line in lines]

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._stdin.write(json.dumps(message).encode() + b"\n")
        except OSError:
            raise self.process.death() from None

    _notify = _send


class HttpConnection(Connection):
    """One connection that is kept open; one request at a time."""

    def __init__(self, process: Process, era: Era, port: int) -> None:
        super().__init__(process, era)
        self._headers = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {era}\r\n"
        )
        self._socket = _connected(process, port)
        self._read = b""

    def fileno(self) -> int:
        """Return the socket."""
        return self._socket.fileno()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def receive(self) -> list[Answer]:
        """Read a response; it counts as arrived when it is whole."""
        chunk = self._socket.recv(READ_SIZE)
        arrived = time.perf_counter()
        if not chunk:
            raise self.process.complaint("closed the connection before it answered")
        self._read += chunk
        head, _, body = self._read.partition(b"\r\n\r\n")
        content = _whole(head.lower(), body)
        if content is None:
            return []
        self._read = b""
        status = head.split(b" ", 2)[1]
        if not status.startswith(b"2"):
            raise self.process.complaint(f"answered {status.decode()}: {content.decode()[:500]}")
        if b"\nmcp-session-id: " in head.lower() and "Mcp-Session-Id" not in self._headers:
            session = head[head.lower().index(b"\nmcp-session-id: ") :].split(b": ")[1].split(b"\r\n")[0]
            self._headers += f"Mcp-Session-Id: {session.decode()}\r\n"
        if head.lower().find(b"text/event-stream") > 0:
            events = [line.removeprefix(b"data: ") for line in content.splitlines() if line.startswith(b"data: {")]
        else:
            events = [content]
        return [_answer(event, arrived) for event in events]

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        headers = f"{self._headers}Mcp-Method: {message['method']}\r\n"
        if "name" in message.get("params", {}):
            headers += f"Mcp-Name: {message['params']['name']}\r\n"
        self._socket.sendall(f"{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def _notify(self, message: dict[str, Any]) -> None:
        self._send(message)
        self.wait_until_readable()
        self._socket.recv(READ_SIZE)


def _connected(process: Process, port: int) -> socket.socket:
    patience_ends = time.monotonic() + PATIENCE
    while True:
        try:
            connected = socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if process.popen.poll() is not None:
                raise process.death() from None
            if time.monotonic() > patience_ends:
                raise process.complaint(f"does not listen on port {port}") from None
            time.sleep(0.002)
        else:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connected


def _whole(head: bytes, body: bytes) -> bytes | None:
    """Return the body once all of it is there."""
    if b"transfer-encoding: chunked" in head:
        return _joined(body) if body.endswith(b"0\r\n\r\n") else None
    length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return body if length and len(body) >= int(length) else None


def _joined(chunks: bytes) -> bytes:
    parts: list[bytes] = []
    while True:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return b"".join(parts)
        parts.append(chunks[:length])
        chunks = chunks[length + 2 :]


def _answer(line: bytes, arrived: float) -> Answer:
    message = json.loads(line)
    return Answer(message.get("id"), arrived, len(line), message)


Call = tuple[str, Params]


def drive(connections: Sequence[Connection], lanes: Sequence[Iterator[Call]]) -> tuple[float, list[Params]]:
    """Have one call of each lane in flight until all lanes are through, and return the seconds and the results.

    The lanes are spread over the connections. Any answer that is an error ends the measurement.
    """
    waiting: dict[tuple[Connection, int], Iterator[Call]] = {}
    replies: list[Params] = []

    def go_on(connection: Connection, lane: Iterator[Call]) -> None:
        following = next(lane, None)
        if following:
            tool, arguments = following
            number = connection.submit("tools/call", {"name": tool, "arguments": arguments})
            waiting[connection, number] = lane

    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        start = time.perf_counter()
        for place, lane in enumerate(lanes):
            go_on(connections[place % len(connections)], lane)
        while waiting:
            ready = selector.select(PATIENCE)
            if not ready:
                raise connections[0].process.complaint(f"has not answered for {PATIENCE:g} s")
            for key, _ in ready:
                connection = key.data
                for answer in connection.receive():
                    if answer.number is None:
                        continue  # a notification
                    replies.append(connection.result(answer))
                    go_on(connection, waiting.pop((connection, answer.number)))
        return time.perf_counter() - start, replies
