"""Real servers under torture, on stdio and over HTTP."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

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


class Restarted:
    """One server after the other: each is started when the one before it was killed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.wire = Server(root)
        self.kills = 0

    def restart(self) -> None:
        """Kill it, and start another one."""
        self.wire.kill()
        self.wire = Server(self._root)
        self.kills += 1

    def cut(self, seconds: float, tool_name: str, /, **arguments: Any) -> None:
        """Send a call, and kill the server so long after, whether it has answered or not."""
        answer = self.wire.send("tools/call", name=tool_name, arguments=arguments)
        time.sleep(seconds)
        self.restart()
        with suppress(Gone):
            answer.result(10)

    def text(self, tool_name: str, /, **arguments: Any) -> str:
        """Call a tool, and return its text.

        Raises:
            RuntimeError: The call was refused.
        """
        answer = self.wire.request("tools/call", name=tool_name, arguments=arguments)["result"]
        text = str(answer["content"][0]["text"])
        if answer.get("isError"):
            raise RuntimeError(f"{tool_name}: {text}")
        return text


AnyServer = Server | WebServer
TRANSPORTS: dict[str, tuple[type[AnyServer], ...]] = {
    "stdio": (Server,),
    "http": (WebServer,),
    "mixed": (Server, WebServer),
}
transport_option = click.option(
    "--transport", type=click.Choice([*TRANSPORTS]), default="stdio", show_default=True, help="How agents reach it."
)


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
