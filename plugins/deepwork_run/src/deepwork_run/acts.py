"""What people do to runs from the terminal and the pages: stop one, and have an agent go on with a session."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import anyio
from anyio import to_thread

from deepwork.api import DeepWorkError, PluginContext, open_project
from deepwork.ports.agent import NAME_VARIABLE, SESSION_VARIABLE
from deepwork.programs.processes import ApartProgram, start_apart
from deepwork.text import one_line
from deepwork_run.record import Record

# An agent that is asked to stop has ten seconds after its call.
END_SECONDS = 15.0
START_SECONDS = 30.0
LOOK_SECONDS = 0.05
# For demos and tests: it would report work that nobody has done.
WITHOUT_MODEL = "scripted"


def stop_runner(record: Record) -> int:
    """Ask the process that runs a session to stop, and return its id: its agent finishes the call that it makes.

    Raises:
        DeepWorkError: Nobody runs the session.
    """
    pid = record.runner()
    if pid is None:
        raise DeepWorkError(f"Nobody runs session {record.session_id}; there is nothing to stop")
    os.kill(pid, signal.SIGTERM)
    return pid


async def go_on(context: PluginContext, session_id: str, agent: str | None) -> str:
    """Start a runner that outlives this process, and return what was done. The runner before it is stopped first.

    Without an agent, those of the last run go on.

    Raises:
        DeepWorkError: The runner before it still finishes a call, or the new one has ended at once; nothing works now.
    """
    return await to_thread.run_sync(_go_on, context, session_id, agent)


def _go_on(context: PluginContext, session_id: str, agent: str | None) -> str:
    record = Record(context.workspace, session_id)
    if record.runner() is not None:
        pid = stop_runner(record)
        if not _becomes_true(lambda: record.runner() is None, END_SECONDS):
            raise DeepWorkError(
                f"Process {pid} was asked to stop, and its agent still finishes a call; nothing was started",
                hint="Try again once it has ended.",
            )
    root = str(context.project_root)
    command = [sys.executable, "-P", "-m", "deepwork", "run", "--continue", session_id, "--path", root]
    command += ["--with", agent] if agent else []
    # A server that an agent has started has the marks of its run, by which the next runner would end this one.
    environment = {
        name: value for name, value in context.environment.items() if name not in (SESSION_VARIABLE, NAME_VARIABLE)
    }
    with record.log() as output:
        process = start_apart(command, cwd=context.project_root, environment=environment, output=output)
    _becomes_true(lambda: process.poll() is not None or record.runner() == process.pid, START_SECONDS)
    return _outcome(record, process)


def _outcome(record: Record, process: ApartProgram) -> str:
    if process.returncode is None:
        return f"An agent goes on with session {record.session_id}"
    if process.returncode == 0:
        return f"Session {record.session_id} is complete"
    printed = one_line(record.logged().strip().removeprefix("Error: "), 500)
    raise DeepWorkError(f"The run has ended at once, with code {process.returncode}: {printed}")


def _becomes_true(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


async def usable_agents(context: PluginContext) -> list[str]:
    """Return the agents that can be started here, in a thread: it loads all plugins."""
    return await to_thread.run_sync(anyio.run, _usable_agents, str(context.project_root))


async def _usable_agents(root: str) -> list[str]:
    async with open_project("run", root) as project:
        names = [name for name in project.agents if name != WITHOUT_MODEL]
        return [name for name in names if await project.agents[name].create().available() is None]
