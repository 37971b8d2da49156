"""An agent without a model, for demos and for tests of jobs: it writes what each step declares, and reports it.

What is there already is reported as it is, so a test of a job writes the outputs that it wants to see judged. It is a
program of its own, as every agent is: `python -m deepwork_run.agents.scripted SESSION SERVER...`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepwork.api import PluginContext
from deepwork.ports.agent import AgentEvent, AgentTask, Called, Failed, Said
from deepwork_run.agents.program import ProgramAgent, Stream
from deepwork_run.settings import RunSettings

REASON = "scripted agent: nobody has looked at it"


class ScriptedAgent(ProgramAgent):
    """Works through a session without a model."""

    VARIABLES = ("DEEPWORK_*",)
    is_lost = False

    def __init__(self, context: PluginContext, settings: RunSettings, python: str = sys.executable) -> None:
        super().__init__(context, settings, python)

    def arguments(self, task: AgentTask, folder: Path) -> list[str]:
        """Return those of this module."""
        return ["-P", "-m", __name__, task.session_id, *task.server]

    def stream(self) -> Stream:
        """Return itself: there is nothing to remember of what it prints."""
        return self

    def events(self, message: dict[str, Any]) -> Iterator[AgentEvent]:
        """Return what `_tell` has told."""
        if "said" in message:
            yield Said(str(message["said"]))
        elif "called" in message:
            yield Called("finished_step", str(message["called"]), is_done=bool(message.get("done")))

    def ended(self, code: int, said: str) -> Iterator[AgentEvent]:
        """Tell of a failure."""
        if code:
            yield Failed(f"the scripted agent {said}")


class Server:
    """The server, as a client on stdio sees it."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._calls = 0
        client = {"name": "scripted", "version": "1"}
        self._request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self._send({"method": "notifications/initialized"})

    def finish(self, **arguments: Any) -> dict[str, Any]:
        """Call `finished_step`, and return the reply, or the error under `refused`."""
        answer = self._request("tools/call", {"name": "finished_step", "arguments": arguments})
        if answer.get("isError"):
            return {"refused": answer["content"][0]["text"]}
        return dict(answer["structuredContent"])

    def _request(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._calls += 1
        self._send({"id": self._calls, "method": method, "params": parameters})
        assert self._process.stdout
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == self._calls:
                return dict(message["result"])
        raise SystemExit("the server has ended")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def work(session_id: str, command: list[str]) -> int:
    """Report one step after the other, until nothing more can be done."""
    server = Server(command)
    reply = _finish(server, session_id=session_id, step_id="?", outputs={})
    while step := reply.get("begin_step"):
        outputs = {name: _written(name, about) for name, about in _declared(step)}
        report = {"session_id": session_id, "step_id": step["step_id"], "outputs": outputs}
        reply = _finish(server, **report)
        if reply.get("status") == "needs_work":
            reply = _finish(server, **report, quality_review_override_reason=REASON)
        _tell(said=f"{step['step_id']}: {reply.get('status') or reply.get('refused')}")
        if "refused" in reply:
            return 1
    return 0


def _finish(server: Server, **arguments: Any) -> dict[str, Any]:
    _tell(called=arguments["step_id"])
    reply = server.finish(**arguments)
    _tell(called=arguments["step_id"], done=True)
    return reply


def _declared(step: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(about["name"], about) for about in step["step_expected_outputs"] if about.get("required", True)]


def _written(name: str, about: dict[str, Any]) -> str | list[str]:
    path = Path(name if Path(name).suffix else f"{name}.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(f"# {name}\n\n{about.get('description', '')}\n", encoding="utf-8")
    return [str(path)] if about.get("type") == "files" else str(path)


def _tell(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(work(sys.argv[1], sys.argv[2:]))
