"""Real servers over stdio. Agents speak JSON-RPC lines, without a client library that takes time of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

PATIENCE = 60.0
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}


class Gone(Exception):
    """The server died before it answered."""


class Refused(Exception):
    """A call that was answered with an error; its text is what the agent reads."""


def launch(root: Path, log: Path, *options: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start `deepwork serve` on a project."""
    with log.open("a") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "deepwork", "serve", "--path", str(root), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **(env or {})},
        )


class Server:
    """One `deepwork serve` process, ready for calls."""

    def __init__(
        self, root: Path, *, level: str = "warning", env: Mapping[str, str] | None = None, log: Path | None = None
    ) -> None:
        log = log or root / "server.log"
        self.process = launch(root, log, "--log-level", level, env=env)
        assert self.process.stdin
        self._stdin = self.process.stdin
        self._writing = threading.Lock()
        self._waiting: dict[int | str | None, Future[dict[str, Any]]] = {}
        self._number = 0
        threading.Thread(target=self._read, args=[self.process.stdout], daemon=True).start()
        try:
            self._ask("initialize", HELLO).result(PATIENCE)
        except Gone:
            raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}") from None
        self._write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, tool: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Call a tool without waiting; the future gives the reply, or raises Refused or Gone."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""
        return self.send(tool, **arguments).result(PATIENCE)

    def read(self, uri: str) -> dict[str, Any]:
        """Read a resource."""
        return self._ask("resources/read", {"uri": uri}).result(PATIENCE)

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that has to refuse, and give its text; an empty one if it did not."""
        try:
            self.call(tool, **arguments)
        except Refused as refused:
            return str(refused)
        return ""

    def in_flight(self) -> int:
        """Count the calls that wait for an answer."""
        return len(self._waiting)

    def kill(self) -> None:
        """Kill it as no server can prepare for."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it in order."""
        with self._writing:
            self._stdin.close()
        self.process.wait(PATIENCE)

    def post(self, frame: bytes, request_id: int | str | None) -> Future[dict[str, Any]]:
        """Write any line; the future waits for an answer that names this id."""
        future: Future[dict[str, Any]] = Future()
        with self._writing:
            self._waiting[request_id] = future
        self._write(frame)
        return future

    def _ask(self, method: str, params: dict[str, Any]) -> Future[dict[str, Any]]:
        with self._writing:
            self._number += 1
            number = self._number
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return self.post(json.dumps(message).encode(), number)

    def _write(self, frame: bytes) -> None:
        try:
            with self._writing:
                self._stdin.write(frame + b"\n")
                self._stdin.flush()
        except (OSError, ValueError):
            self._give_up()

    def _read(self, stdout: IO[bytes]) -> None:
        for line in stdout:
            if not line.endswith(b"\n"):
                break  # cut off by the kill: no answer has arrived
            message = json.loads(line)
            future = self._waiting.pop(message.get("id"), None)
            if future is None:
                continue
            result = message.get("result")
            if result is None:
                future.set_exception(Refused(json.dumps(message.get("error"))))
            elif result.get("isError"):
                future.set_exception(Refused(result["content"][0]["text"]))
            else:
                future.set_result(result.get("structuredContent", result))
        self._give_up()

    def _give_up(self) -> None:
        with self._writing:
            waiting, self._waiting = [*self._waiting.values()], {}
        for future in waiting:
            future.set_exception(Gone())


def tracebacks(folder: Path) -> int:
    """Count what servers have logged in a folder that they should not have."""
    return sum(log.read_text(errors="replace").count("Traceback") for log in folder.glob("server*.log"))
