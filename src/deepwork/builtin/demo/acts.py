"""The three acts: a scripted agent works through the packaged tour, and each reply is checked."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from deepwork.builtin.demo import transcript
from deepwork.errors import DeepWorkError

PID_FILE = "server.pid"
NOTES = "README.md: a command that counts words\nwords.py: all of the code\n"
FIRST_DRAFT = "# Tour\n\nThis project counts words. The code is in `words.py`.\n"
SECOND_DRAFT = FIRST_DRAFT + "\nTry it: `python words.py README.md`\n"
# Leaves its pid for the second act, and is then what `python -m deepwork` is.
SERVER = f"import os; open({PID_FILE!r}, 'w').write(str(os.getpid())); from deepwork.__main__ import run; run()"


class ActFailed(DeepWorkError):
    """A reply was not what the act is there to show."""


class ScriptedAgent:
    """Calls tools, and shows what it sends and what comes back."""

    def __init__(self, client: Client[Any], project: Path) -> None:
        self._client = client
        self._project = project

    async def call(self, tool: str, status: str, **arguments: Any) -> Any:
        """Call a tool, and return its reply.

        Raises:
            ActFailed: The reply has another status.
        """
        transcript.call(tool, arguments)
        result = await self._client.call_tool(tool, arguments, raise_on_error=False)
        if result.is_error:
            text = "\n".join(getattr(part, "text", "") for part in result.content)
            transcript.refusal(text)
            return _as_expected(text, status, "refused")
        reply = dict(result.structured_content or {})
        transcript.reply(reply)
        return _as_expected(reply, status, reply.get("status", "started"))

    async def finish(self, status: str, output: str, path: str, session_id: str) -> Any:
        """Report a step."""
        return await self.call("finished_step", status, outputs={output: path}, session_id=session_id)

    def write(self, path: str, text: str) -> None:
        """Write a file of the project."""
        file = self._project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        transcript.agent(f"writes {path}")


async def play(project: Path, environment: Mapping[str, str]) -> None:
    """Play all acts in a prepared project.

    Raises:
        ActFailed: One of them did not show what it is there to show.
    """
    async with connected(project, environment) as agent:
        transcript.act("1. A step is done when its outputs are there, not when the agent says so")
        chosen = {"job_name": "project_tour", "workflow_name": "write_tour", "goal": "A tour for newcomers"}
        session_id = (await agent.call("start_workflow", "started", **chosen))["begin_step"]["session_id"]
        refusal = await agent.finish("refused", "notes", "tour/notes.md", session_id)
        _check("tour/notes.md" in refusal, "the refusal names the missing file")
        agent.write("tour/notes.md", NOTES)
        await agent.finish("next_step", "notes", "tour/notes.md", session_id)

        transcript.act("2. The server is killed, and the agent has forgotten everything")
        os.kill(int((project / PID_FILE).read_text(encoding="utf-8")), signal.SIGKILL)
        transcript.server("killed (SIGKILL)", "red")
    async with connected(project, environment) as agent:
        refusal = await agent.call("finished_step", "refused", outputs={})
        _check(session_id in refusal, "the refusal names the session that is open")
        resumed = await agent.call("finished_step", "needs_work", outputs={}, session_id=session_id, step_id="?")
        _check("write" in resumed["feedback"], "the reply says where the agent was")
        transcript.agent("reads where it was, and goes on")

        transcript.act("3. The quality gate holds the step until its review has passed")
        agent.write("TOUR.md", FIRST_DRAFT)
        await agent.finish("needs_work", "tour", "TOUR.md", session_id)
        agent.write("TOUR.md", SECOND_DRAFT)
        reply = await agent.finish("workflow_complete", "tour", "TOUR.md", session_id)
        _check(json.dumps(reply["all_outputs"]).count("tour") >= 2, "the last reply names what was made")


@asynccontextmanager
async def connected(project: Path, environment: Mapping[str, str]) -> AsyncIterator[ScriptedAgent]:
    """Start a server process, as a client does, and connect to it."""
    transport = StdioTransport(
        sys.executable,
        ["-P", "-c", SERVER, "serve", "--path", ".", "--tools", "core"],
        cwd=str(project),
        env=dict(environment),
        keep_alive=False,
        log_file=project / "server.log",
    )
    async with Client(transport) as client:
        yield ScriptedAgent(client, project)


def _as_expected(reply: Any, expected: str, status: str) -> Any:
    _check(status == expected, f"the reply is {expected}, not {status}")
    return reply


def _check(reply: object, text: str) -> None:
    if not reply:
        raise ActFailed(f"not so: {text}", hint="Please report this: it works with every release.")
