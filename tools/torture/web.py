"""Real servers over HTTP, spoken to without a client library. Each thread is a client of its own."""

from __future__ import annotations

import http.client
import json
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wire import HELLO, PATIENCE, Gone, Refused, Server, launch

LISTENING = re.compile(r"listening on (http://\S+)")


class WebServer:
    """One `deepwork serve --transport http` process, ready for calls."""

    def __init__(self, root: Path, *, env: Mapping[str, str] | None = None, logs: Path | None = None) -> None:
        with tempfile.NamedTemporaryFile(prefix="server-", suffix=".log", dir=logs or root, delete=False) as file:
            log = Path(file.name)
        self.process = launch(root, log, "--transport", "http", "--port", "0", env=env)
        self._url = urlsplit(self._address(log))
        self._own = threading.local()
        self._counting = threading.Lock()
        self._under_way = 0

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool."""
        return self._ask("tools/call", {"name": tool, "arguments": arguments})

    def read(self, uri: str) -> dict[str, Any]:
        """Read a resource."""
        return self._ask("resources/read", {"uri": uri})

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that has to refuse, and give its text; an empty one if it did not."""
        try:
            self.call(tool, **arguments)
        except Refused as refused:
            return str(refused)
        return ""

    def in_flight(self) -> int:
        """Count the calls that wait for an answer."""
        return self._under_way

    def kill(self) -> None:
        """Kill it as no server can prepare for."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it in order."""
        self.process.terminate()
        self.process.wait(PATIENCE)

    def _address(self, log: Path) -> str:
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            if found := LISTENING.search(log.read_text(errors="replace")):
                return found[1]
            time.sleep(0.02)
        self.kill()
        raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}")

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        with self._counting:
            self._under_way += 1
        try:
            if not hasattr(self._own, "client"):
                self._own.client = Client(self._url.hostname or "", self._url.port or 0, self._url.path)
            client: Client = self._own.client
            return client.ask(method, params)
        except (OSError, http.client.HTTPException):
            raise Gone from None
        finally:
            with self._counting:
                self._under_way -= 1


class Client:
    """One session of the transport, on one connection."""

    def __init__(self, host: str, port: int, path: str) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=PATIENCE)
        self._path = path
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._number = 0
        self.ask("initialize", HELLO)
        self._headers["MCP-Protocol-Version"] = str(HELLO["protocolVersion"])
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request, and give the result.

        Raises:
            Refused: It was answered with an error.
            Gone: It was not answered.
        """
        self._number += 1
        for message in self._post({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}):
            if message.get("id") != self._number:
                continue
            result = message.get("result")
            if result is None:
                raise Refused(json.dumps(message.get("error")))
            if result.get("isError"):
                raise Refused(result["content"][0]["text"])
            answer: dict[str, Any] = result.get("structuredContent", result)
            return answer
        raise Gone

    def _post(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._connection.request("POST", self._path, json.dumps(message), self._headers)
        response = self._connection.getresponse()
        body = response.read().decode()
        if response.status == 503:  # it is ending
            raise Gone
        if response.status >= 400:
            raise Refused(f"status {response.status}: {body[:300]}")
        self._headers.setdefault("Mcp-Session-Id", response.headers.get("Mcp-Session-Id", ""))
        if response.headers.get("Content-Type", "").startswith("text/event-stream"):
            lines = [line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:")]
        else:
            lines = [body]
        return (json.loads(line) for line in lines if line.strip())


AnyServer = Server | WebServer
