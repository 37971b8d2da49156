"""Malformed tool calls, made from the schemas of tools/list: each is answered, and none changes anything.

Everything that is wrong with a call is drawn by a seed: the type, the presence and the content of its arguments, its
envelope, its very bytes. All installed tool sets are called. Each call has to be answered under its own id wherever
that can be known; the log may grow by 500 bytes, and nothing in the project may change.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import TimeoutError as NoAnswer
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile_paths import PATHS

from deepwork.testing import (
    DeepworkProject,
    Gone,
    HttpWire,
    Refused,
    StdioWire,
    address_of,
    output,
    start_server,
    step,
)
from deepwork.testing.wire import PATIENCE

LOG_BYTES = 500
# How a call ends that is not answered.
FAILURES = (NoAnswer, Gone, ValueError)

RequestId = int | str | None

HUGE = 1_000_000
TEXTS = [
    "", " ", "\n", "\0", "a\0b", "\x1b[2J\x07", "\r\nINFO forged", "\u202e\u200b\ufeff", "\u2028", "é😀", "\ud800",
    "x\udfffy", "null", "'; DROP TABLE sessions; --", "{{7*7}}", "$(touch x)", "%s%n", "<b>", "x" * 5000, "😀" * 20_000,
    "x" * HUGE, "\0" * (HUGE // 6),
]  # fmt: skip
# What json.dumps would not write: put in afterwards, in the place of these strings.
RAW = {
    "@digits": b"9" * 5000,
    "@deep": b"[" * 20_000 + b"]" * 20_000,
    "@deeper than 198": b"[" * 250 + b"]" * 250,
    "@nan": b"NaN",
    "@huge": b"1e999",
    "@bytes": b'"\xff\xfe"',
    "@surrogate": b'"\xed\xa0\x80"',
}
OTHERS = [None, True, 0, -1, 1.5, 2**70, [], [[]], [None], {}, {"a": {}}, {"": None}, [1] * 2000]
UNREADABLE = [b"\xff\xfe\x00", b"{", b"]", b"\0" * 5000, b'"', b"x" * HUGE, b"[" * 100_000, b"nul", b"\xef\xbb\xbf{}"]


@dataclass(frozen=True)
class Call:
    """The bytes of a call, what is wrong with it, and the id that its answer has to name."""

    fault: str
    frame: bytes
    request_id: RequestId


class Maker:
    """Makes calls, each of them wrong in at least one way, so that none may change anything."""

    def __init__(self, tools: list[dict[str, Any]], seed: int) -> None:
        self._tools = tools
        self._chance = random.Random(seed)
        self._faults = [self._argument, self._argument, self._missing, self._extra, self._path, self._envelope]
        self._faults += [self._params, self._unknown, self._unreadable]

    def make(self, number: int) -> Call:
        """Make the next call."""
        fault = self._chance.choice(self._faults)
        return fault(f"call {number}")

    def _argument(self, request_id: str) -> Call:
        """Set one argument to a value that it cannot have."""
        tool = self._tool()
        name = self._chance.choice(list(tool["inputSchema"]["properties"]))
        kind = self._chance.choice(["type", "text", "inside"])
        if kind == "type":
            value = self._other(tool["inputSchema"]["properties"][name])
        elif kind == "text":
            value = self._text(name)
        else:
            value = self._chance.choice([{"x": self._any()}, [self._any()], {self._chance.choice(TEXTS): self._any()}])
        return self._call(f"argument: {kind}", request_id, tool, {**self._arguments(tool), name: value})

    def _missing(self, request_id: str) -> Call:
        tool = self._tool("required")
        arguments = self._arguments(tool)
        del arguments[self._chance.choice(tool["inputSchema"]["required"])]
        return self._call("argument: missing", request_id, tool, arguments)

    def _extra(self, request_id: str) -> Call:
        tool = self._chance.choice(self._tools)
        arguments = {**self._arguments(tool), f"x{self._chance.choice(TEXTS)}": self._any()}
        return self._call("argument: extra", request_id, tool, arguments)

    def _path(self, request_id: str) -> Call:
        """Put a path that leads out where a path belongs."""
        path = self._chance.choice(PATHS).format(up="..", outside="/outside", project="/project", target="secret")
        places: dict[str, tuple[str, Any]] = {
            "finished_step": ("outputs", {"a.md": "good.md", "many": ["good.md", path]}),
            "start_workflow": ("job_name", path),
            "abort_workflow": ("session_id", path or "x"),
            "get_review_instructions": ("files", [path]),
            "get_configured_reviews": ("only_rules_matching_files", [path]),
            "mark_review_as_passed": ("review_id", path),
        }
        tool = self._chance.choice([tool for tool in self._tools if tool["name"] in places])
        name, value = places[tool["name"]]
        return self._call("path", request_id, tool, {**self._arguments(tool), name: value})

    def _envelope(self, request_id: str) -> Call:
        """Spoil a field of the message itself."""
        message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": "get_workflows"}}
        spoilt = self._chance.choice(["jsonrpc", "id", "method", "params"])
        answered_id: RequestId = request_id
        if spoilt == "id":
            message["id"] = self._chance.choice([None, True, 1.5, [1], {}, "@digits", "@bytes", "\ud800"])
            answered_id = None
        elif self._chance.random() < 0.3 and spoilt != "params":
            del message[spoilt]
        else:
            message[spoilt] = self._chance.choice([0, True, [1], "x", *RAW])
        return Call(f"envelope: {spoilt}", written(message), answered_id)

    def _params(self, request_id: str) -> Call:
        """Spoil what the method takes."""
        params = {"name": "get_workflows", "arguments": {}}
        spoilt = self._chance.choice(["name", "arguments", "_meta"])
        if spoilt == "name" and self._chance.random() < 0.3:
            del params["name"]
        else:
            params[spoilt] = self._chance.choice([0, True, 1.5, [1], "@digits", "@deep", "@bytes", "\ud800"])
        return self._message(f"params: {spoilt}", request_id, "tools/call", params)

    def _unknown(self, request_id: str) -> Call:
        name = self._chance.choice([*TEXTS, *PATHS, "finish_step", "finished_step ", "FINISHED_STEP"])
        if self._chance.random() < 0.5:
            return self._message("unknown tool", request_id, "tools/call", {"name": name, "arguments": self._any()})
        return self._message("unknown method", request_id, f"x/{name}", {"x": self._any()})

    def _unreadable(self, _request_id: str) -> Call:
        return Call("unreadable", self._chance.choice(UNREADABLE), None)

    def _tool(self, key: str = "properties") -> dict[str, Any]:
        return self._chance.choice([tool for tool in self._tools if tool["inputSchema"].get(key)])

    def _arguments(self, tool: dict[str, Any]) -> dict[str, Any]:
        """Return what a tool requires, in the right types but naming nothing that exists."""
        schema = tool["inputSchema"]
        names = list(schema.get("required", []))
        if tool["annotations"]["destructiveHint"]:  # or it would do its work on the open session
            names += [name for name in schema["properties"] if name.endswith("session_id")]
        return {name: {} if schema["properties"][name].get("type") == "object" else "no such thing" for name in names}

    def _other(self, schema: dict[str, Any]) -> Any:
        allowed = {part.get("type") for part in [schema, *schema.get("anyOf", [])]}
        kinds: dict[Any, str] = {str: "string", list: "array", dict: "object", type(None): "null"}
        return self._chance.choice([value for value in OTHERS if kinds.get(type(value)) not in allowed] + [*RAW])

    def _text(self, name: str) -> str:
        # An empty id of a session counts as none.
        return self._chance.choice([text for text in TEXTS if text.strip() or not name.endswith("session_id")])

    def _any(self) -> Any:
        return self._chance.choice([*OTHERS, *RAW, *TEXTS])

    def _call(self, fault: str, request_id: str, tool: dict[str, Any], arguments: dict[str, Any]) -> Call:
        return self._message(fault, request_id, "tools/call", {"name": tool["name"], "arguments": arguments})

    def _message(self, fault: str, request_id: str, method: str, params: dict[str, Any]) -> Call:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return Call(fault, written(message), request_id)


def written(message: dict[str, Any]) -> bytes:
    """Write a message as JSON, with the invalid bytes in their places."""
    frame = json.dumps(message).encode()
    for name, raw in RAW.items():
        frame = frame.replace(json.dumps(name).encode(), raw)
    return frame


class OverStdio(StdioWire):
    """A server on stdio that can be given anything."""

    def __init__(self, root: Path) -> None:
        super().__init__(start_server(root, "--log-level", "info"))

    def deliver(self, call: Call) -> None:
        """Write a line and wait for its answer; raises NoAnswer."""
        self.post(call.frame, call.request_id).result(PATIENCE)


class OverHttp(HttpWire):
    """A server for HTTP that can be given anything, on one connection that stays open."""

    def __init__(self, root: Path) -> None:
        self._process = start_server(root, "--transport", "http", "--port", "0")
        super().__init__(address_of(self._process, root / "server.log"))

    def deliver(self, call: Call) -> None:
        """Post a body and wait for its answer; raises NoAnswer."""
        if [message.get("id", "none") for message in self.post(call.frame).messages] != [call.request_id]:
            raise NoAnswer

    def close(self) -> None:
        """End the server."""
        super().close()
        with self._process:
            self._process.terminate()


Connection = OverStdio | OverHttp
CONNECTIONS: dict[str, type[Connection]] = {"stdio": OverStdio, "http": OverHttp}


@dataclass
class Measured:
    """Every call that broke a promise."""

    unanswered: list[str] = field(default_factory=list)
    loud: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


@contextmanager
def grounds() -> Iterator[DeepworkProject]:
    """Make a repository with a job, a rule, a changed file and a file for the good call."""
    folder = Path(os.path.realpath(tempfile.mkdtemp()))
    project = DeepworkProject(folder)
    try:
        project.write_job(steps=[step("a", outputs={"a.md": output(), "many": output("files", required=False)})])
        rule = "{description: d, match: {include: ['**/*.md']}, review: {strategy: individual, instructions: i}}"
        project.write(".deepreview", f"rule: {rule}\n")
        project.write("good.md")
        subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
        yield project
    finally:
        shutil.rmtree(folder)


def measure(transport: str, count: int, seed: int) -> Measured:
    """Open a session, give the server malformed calls, and see that the session can be finished."""
    measured = Measured()
    with grounds() as project:
        connection = CONNECTIONS[transport](project.root)
        connection.greet()
        maker = Maker(connection.ask("tools/list")["tools"], seed)
        started = connection.call("start_workflow", goal="g", job_name="demo", workflow_name="main")
        before = snapshot(project.root)
        log = project.root / "server.log"
        for number in range(count):
            judge(measured, connection, maker.make(number), log)
        changed = sorted(path for path, _ in before ^ snapshot(project.root))
        if changed:
            measured.after.append(f"changed: {', '.join(changed)}")
        try:
            session_id = started["begin_step"]["session_id"]
            reply = connection.call("finished_step", outputs={"a.md": "good.md"}, session_id=session_id)
        except (*FAILURES, Refused) as error:
            reply = {"error": repr(error)}
        if reply.get("status") != "workflow_complete":
            measured.after.append(f"the good call was answered with {reply}")
        connection.close()
        if count_of := log.read_text(errors="replace").count("Traceback"):
            measured.after.append(f"{count_of} tracebacks")
    return measured


def judge(measured: Measured, connection: Connection, call: Call, log: Path) -> None:
    """Deliver one call, and write down how it was taken."""
    about = f"{call.fault}: {call.frame[:150]!r}"
    size = log.stat().st_size
    try:
        connection.deliver(call)
    except FAILURES:
        measured.unanswered.append(about)
        return
    grown = log.stat().st_size - size
    if grown > LOG_BYTES:
        measured.loud.append(f"{grown} bytes: {about}")


def snapshot(root: Path) -> set[tuple[str, bytes]]:
    """Return every file that a refused call may not touch: all but the log, and what reviews are prepared in."""
    state = root / ".deepwork"
    own = [root / "server.log", root / ".git", state / "tmp" / "review_instructions"]
    files = (
        path for path in root.rglob("*") if path.is_file() and not any(path.is_relative_to(folder) for folder in own)
    )
    return {(str(path.relative_to(root)), path.read_bytes()) for path in files if path.suffix != ".lock"}
