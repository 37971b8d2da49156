"""An editor: starts `deepwork jobs lsp` as editors do, and speaks to it over its pipes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PIECES = ("\n", " ", "- ", ": ", "[", "]", "{", "}", '"', "#", "x", "\t", "ü😀", "steps:", "&a ", "*a", "!!int ")
# So many characters of the text give way to a piece.
REPLACED = (0, 0, 1, 5, 40)
# So often all edits are undone: most texts that are edited many times are not YAML, and are refused at once.
UNDONE = 0.05


class Editor:
    """Sends messages, and keeps the diagnostics that it was sent last."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.number = 0
        self.diagnostics: dict[str, dict[str, Any]] = {}

    def send(self, method: str, parameters: Any, *, is_request: bool = False) -> None:
        """Send a message, and do not wait."""
        message = {"jsonrpc": "2.0", "method": method, "params": parameters}
        if is_request:
            self.number += 1
            message["id"] = self.number
        content = json.dumps(message).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Wait for the next message.

        Raises:
            EOFError: The server has ended.
        """
        assert self.process.stdout
        length = 0
        while (line := self.process.stdout.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if not line:
            raise EOFError("the language server has ended")
        message: dict[str, Any] = json.loads(self.process.stdout.read(length))
        if message.get("method") == "textDocument/publishDiagnostics":
            self.diagnostics[message["params"]["uri"]] = message["params"]
        return message

    def request(self, method: str, parameters: Any) -> dict[str, Any]:
        """Send a request, and wait for its answer."""
        self.send(method, parameters, is_request=True)
        while (message := self.receive()).get("id") != self.number or "method" in message:
            pass
        return message

    def open(self, path: Path, text: str | None = None) -> list[dict[str, Any]]:
        """Open a file, and wait for its diagnostics."""
        document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": text or path.read_text()}
        self.send("textDocument/didOpen", {"textDocument": document})
        return self.await_version(path.as_uri(), 1)

    def change(self, path: Path, version: int, *changes: dict[str, Any]) -> None:
        """Change an open file."""
        document = {"uri": path.as_uri(), "version": version}
        self.send("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})

    def await_version(self, uri: str, version: int) -> list[dict[str, Any]]:
        """Wait for the diagnostics of a version."""
        while self.diagnostics.get(uri, {}).get("version") != version:
            self.receive()
        findings: list[dict[str, Any]] = self.diagnostics[uri]["diagnostics"]
        return findings

    def edit_at_random(self, path: Path, count: int, dice: random.Random) -> str:
        """Edit an open file so often, wait for the diagnostics of each version, and return the last text."""
        original = text = path.read_text()
        for version in range(2, count + 2):
            change: dict[str, Any]
            if dice.random() < UNDONE:
                text = original
                change = {"text": text}
            else:
                start = dice.randrange(len(text) + 1)
                end, piece = min(len(text), start + dice.choice(REPLACED)), dice.choice(PIECES)
                change = {"range": {"start": _position(text, start), "end": _position(text, end)}, "text": piece}
                text = text[:start] + piece + text[end:]
            self.change(path, version, change)
            self.await_version(path.as_uri(), version)
        return text


def _position(text: str, index: int) -> dict[str, int]:
    """Return a place in a text as the protocol counts: lines, and units of UTF-16 in the line."""
    begin = text.rfind("\n", 0, index) + 1
    return {"line": text.count("\n", 0, index), "character": len(text[begin:index].encode("utf-16-le")) // 2}


@contextmanager
def editing(root: Path, *arguments: str) -> Iterator[Editor]:
    """Start the server in a project, and end it as editors do.

    Raises:
        RuntimeError: It does not end, or not with 0.
    """
    command = [sys.executable, "-m", "deepwork", *(arguments or ("jobs", "lsp"))]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        editor = Editor(process)
        editor.request("initialize", {"processId": None, "rootUri": root.as_uri(), "capabilities": {}})
        editor.send("initialized", {})
        yield editor
        editor.request("shutdown", None)
        editor.send("exit", None)
        if process.wait(30):
            raise RuntimeError(f"the language server has ended with {process.returncode}")
