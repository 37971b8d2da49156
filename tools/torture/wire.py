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
from typing import Any

PATIENCE = 60.0


class Gone(Exception):
    """The server died before it answered."""


class Refused(Exception):
    """A call that was answered with an error; its text is what the agent reads."""


class Server:
    """One `deepwork serve` process, ready for calls."""

    def __init__(self, root: Path, *, env: Mapping[str, str] | None = None) -> None:
        with (root / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "deepwork", "serve", "--path", str(root), "--log-level", "warning"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **(env or {})},
            )
        self._writing = threading.Lock()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}
        try:
            self._ask("initialize", hello).result(PATIENCE)
        except Gone:
            raise RuntimeError(f"the server did not start:\n{(root / 'server.log').read_text()[-2000:]}") from None
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, tool: str, **arguments: Any) -> Future[dict[str, Any]]:
        """Call a tool without waiting; the future gives the reply, or raises Refused or Gone."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""
        return self.send(tool, **arguments).result(PATIENCE)

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
            self.process.stdin.close()
        self.process.wait(PATIENCE)

    def _ask(self, method: str, params: dict[str, Any]) -> Future[dict[str, Any]]:
        future: Future[dict[str, Any]] = Future()
        with self._writing:
            self._number += 1
            number = self._number
            self._waiting[number] = future
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future

    def _write(self, message: dict[str, Any]) -> None:
        try:
            with self._writing:
                self.process.stdin.write(json.dumps(message).encode() + b"\n")
                self.process.stdin.flush()
        except (OSError, ValueError):
            self._give_up()

    def _read(self) -> None:
        for line in self.process.stdout:
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
                future.set_result(result.get("structuredContent", {}))
        self._give_up()

    def _give_up(self) -> None:
        with self._writing:
            waiting, self._waiting = [*self._waiting.values()], {}
        for future in waiting:
            future.set_exception(Gone())


def tracebacks(root: Path) -> int:
    """Count what servers of this project have logged that they should not have."""
    return (root / "server.log").read_text(errors="replace").count("Traceback")
