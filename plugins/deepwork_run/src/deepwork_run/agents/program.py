"""What agents that are programs have in common: where it is, what it sees, and the lines that it prints."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from anyio import to_thread

from deepwork.api import PluginContext, allowed_environment
from deepwork.errors import ProgramMissing
from deepwork.ports.agent import AgentTask
from deepwork.programs.processes import RunningProgram, running_program
from deepwork.programs.programs import find_program
from deepwork.text import one_line
from deepwork_run.agents.refusals import MAX_QUOTED
from deepwork_run.settings import RunSettings

# A line of a result may hold whole files; a longer one is dropped.
MAX_LINE = 8 * 1024 * 1024


class AgentProgram:
    """The program of one vendor.

    Args:
        context: That of the plugin.
        settings: Those of the plugin.
        name: The program, by name or path.
        variables: What it may see of the environment besides the usual, such as the vendor's own keys.
    """

    def __init__(self, context: PluginContext, settings: RunSettings, name: str, variables: Sequence[str]) -> None:
        self._context = context
        self._settings = settings
        self._variables = variables
        self.name = name

    async def missing(self) -> str | None:
        """Return why it cannot be started; None if it can."""
        try:
            root = self._context.project_root
            path = await to_thread.run_sync(find_program, self.name, self._context.environment, root)
        except ProgramMissing as error:
            return error.message
        return None if os.access(path, os.X_OK) else f"{self.name!r} cannot be started: there is no such program"

    def running(
        self, task: AgentTask, arguments: Sequence[str], more: dict[str, str]
    ) -> AbstractAsyncContextManager[RunningProgram]:
        """Run it in the project, with the prompt on its stdin."""
        environment = allowed_environment(task.environment, (*self._variables, *self._settings.pass_env))
        return running_program(
            [self.name, *arguments],
            cwd=task.project_root,
            environment={**environment, **more, **task.marks},
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
