"""What agents that are programs have in common: where it is, what it sees, and the lines that it prints."""

from __future__ import annotations

import json
import os
import shlex
import signal
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol

from anyio import to_thread

from deepwork.api import PluginContext, allowed_environment
from deepwork.errors import ProgramMissing
from deepwork.paths.private_folders import private_folder
from deepwork.ports.agent import Agent, AgentEvent, AgentTask, Ended, Failed
from deepwork.programs.processes import RunningProgram, running_program
from deepwork.programs.programs import find_program
from deepwork.text import one_line
from deepwork_run.agents.refusals import MAX_QUOTED
from deepwork_run.settings import RunSettings

# A line of a result may hold whole files; a longer one is dropped.
MAX_LINE = 8 * 1024 * 1024
# Our server may take so long to start on a busy machine.
SERVER_SECONDS = 60


class Stream(Protocol):
    """What one process of an agent tells.

    Attributes:
        is_lost: Whether it cannot do anything for the session, so that it is ended at once.
    """

    is_lost: bool

    def events(self, message: dict[str, Any]) -> Iterable[AgentEvent]:
        """Return what an object that it has printed tells."""

    def ended(self, code: int, said: str) -> Iterable[AgentEvent]:
        """Return what an end tells that comes unasked. `said` has the last that it has printed on stderr."""


class ProgramAgent(Agent):
    """An agent that is the program of a vendor: it prints JSON, an object a line.

    Attributes:
        VARIABLES: What it may see of the environment besides the usual, such as the vendor's own keys.
    """

    VARIABLES: ClassVar[tuple[str, ...]]

    def __init__(self, context: PluginContext, settings: RunSettings, program: str) -> None:
        self._context = context
        self._settings = settings
        self._name = program

    @abstractmethod
    def arguments(self, task: AgentTask, folder: Path) -> list[str]:
        """Return its arguments; what they name besides is written into a private folder."""

    @abstractmethod
    def stream(self) -> Stream:
        """Make what reads the output of one process."""

    def environment(self, task: AgentTask) -> Mapping[str, str]:
        """Return what our server needs in the environment of the program."""
        return task.server_environment

    async def available(self) -> str | None:
        """Look for the program."""
        try:
            root = self._context.project_root
            path = await to_thread.run_sync(find_program, self._name, self._context.environment, root)
        except ProgramMissing as error:
            return error.message
        return None if os.access(path, os.X_OK) else f"{self._name!r} cannot be started: there is no such program"

    async def start(self, task: AgentTask) -> AsyncGenerator[AgentEvent, None]:
        """Run it once in the project, with the prompt on its stdin."""
        stream, code = self.stream(), -signal.SIGKILL
        with private_folder() as folder:
            try:
                async with self._running(task, folder) as program:
                    async for message in json_lines(program, task):
                        for event in stream.events(message):
                            yield event
                        if stream.is_lost:
                            break
                    else:
                        code = await program.ended()
                        if not task.stop.is_set():
                            for event in stream.ended(code, said_on_stderr(program, code)):
                                yield event
            except ProgramMissing as error:
                yield Failed(error.message)
                code = 127
        yield Ended(code)

    def _running(self, task: AgentTask, folder: Path) -> AbstractAsyncContextManager[RunningProgram]:
        environment = allowed_environment(task.environment, (*self.VARIABLES, *self._settings.pass_env))
        return running_program(
            [self._name, *self.arguments(task, folder)],
            cwd=task.project_root,
            environment={**environment, **self.environment(task), **task.marks},
            stdin=task.prompt.encode("utf-8", "replace"),
            project=task.project_root,
        )


async def json_lines(program: RunningProgram, task: AgentTask) -> AsyncIterator[dict[str, Any]]:
    """Yield the objects that a program prints, one a line, and keep every line; other lines are left out."""
    async for line in program.lines(MAX_LINE, task.stop):
        task.keep(line)
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            yield document


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping, an empty one for anything else: a program may print any shape."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the mappings of a list; none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: Any) -> int:
    """Return a count; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def said_on_stderr(program: RunningProgram, code: int) -> str:
    """Return how a program has ended, with the last that it has printed on stderr."""
    lines = program.errors().decode("utf-8", "replace").strip().splitlines()
    text = one_line(" ".join(lines[-3:]), MAX_QUOTED)
    how = f"ended with code {code}" if code >= 0 else f"was killed by signal {-code}"
    return f"{how}: {text}" if text else how


def private_file(folder: Path, name: str, content: Any) -> str:
    """Write JSON into a private folder, and return the path."""
    path = folder / name
    path.touch(0o600)
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def hooks_of(task: AgentTask, client: str, events: Sequence[str]) -> dict[str, Any]:
    """Write our hooks in the form that Claude Code has brought up."""
    hooks: dict[str, Any] = {}
    for event in events:
        words = shlex.join((*task.hook, event, "--client", client))
        matcher = {"matcher": "mcp__deepwork__.*"} if event == "PostToolUse" else {}
        hooks[event] = [{**matcher, "hooks": [{"type": "command", "command": words, "timeout": 10}]}]
    return hooks
