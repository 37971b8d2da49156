"""Real servers under torture, on stdio and over HTTP."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deepwork.testing import Gone, HttpWire, Refused, StdioWire, address_of, start_server
from deepwork.testing.wire import PATIENCE, Wire


class Killable:
    """A process that can be killed as no server can prepare for."""

    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self.process.kill()
        self.process.wait()


class Server(Killable, StdioWire):
    """One `deepwork serve` process, ready for calls of any thread."""

    def __init__(self, root: Path, *, env: Mapping[str, str] | None = None, logs: Path | None = None) -> None:
        log = (logs or root) / "server.log"
        super().__init__(start_server(root, "--log-level", "warning", env=env, log=log))
        try:
            self.greet()
        except Gone:
            raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}") from None


class WebServer(Killable, Wire):
    """One `deepwork serve --transport http` process, ready for calls; each thread is a client of its own."""

    def __init__(self, root: Path, *, env: Mapping[str, str] | None = None, logs: Path | None = None) -> None:
        super().__init__()
        with tempfile.NamedTemporaryFile(prefix="server-", suffix=".log", dir=logs or root, delete=False) as file:
            log = Path(file.name)
        self.process = start_server(root, "--transport", "http", "--port", "0", env=env, log=log)
        self.unanswered = 0
        self._counting = threading.Lock()
        self._of_thread = threading.local()
        try:
            self._url = address_of(self.process, log)
        except Gone:
            self.kill()
            raise

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request as the client that this thread is."""
        with self._counting:
            self.unanswered += 1
        try:
            return self._client().request(method, **params)
        finally:
            with self._counting:
                self.unanswered -= 1

    def notify(self, method: str, **params: Any) -> None:
        """Send a message that has no answer."""
        self._client().notify(method, **params)

    def close(self) -> int:
        """End it in order, and return its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def _client(self) -> HttpWire:
        if not hasattr(self._of_thread, "client"):
            client = HttpWire(self._url)
            client.greet()
            self._of_thread.client = client
        wire: HttpWire = self._of_thread.client
        return wire


AnyServer = Server | WebServer
TRANSPORTS: dict[str, tuple[type[AnyServer], ...]] = {
    "stdio": (Server,),
    "http": (WebServer,),
    "mixed": (Server, WebServer),
}


def answer_text(server: AnyServer, tool: str, **arguments: Any) -> str:
    """Call a tool, and return what an agent reads of it: the text of a refusal, else feedback or summary."""
    try:
        reply = server.call(tool, **arguments)
    except Refused as refused:
        return str(refused)
    return str(reply.get("feedback") or reply.get("summary") or "")


def tracebacks(folder: Path) -> int:
    """Count what servers have logged in a folder that they should not have."""
    return sum(log.read_text(errors="replace").count("Traceback") for log in folder.glob("server*.log"))
