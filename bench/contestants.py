"""Who is measured: FLOOR, and all commands of the command line; how each is started."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.client import Answer, Call, Connection, ContestantError, Era, HttpConnection, Params, PipeConnection, Process
from deepwork.loading.discovery import installed

FLOOR_SCRIPT = Path(__file__).with_name("floor.py")
WORKFLOW_TOOLS = {"get_workflows", "start_workflow", "finished_step"}


@dataclass(frozen=True)
class Contestant:
    """A server by its name and command.

    In the command `{project}` stands for the folder of a project and `{port}` for a port; one with `{port}` is spoken
    to over HTTP, the others over stdin and stdout.
    """

    name: str
    command: str
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_plugins(self) -> bool:
        """True if it is our server with all plugins, which may cost as much more as `goals.py` says."""
        return self.command.startswith("deepwork ") and "--no-plugin" not in self.command

    @property
    def over_http(self) -> bool:
        """True if it is spoken to over HTTP."""
        return "{port}" in self.command


def _without_plugins() -> str:
    """Return the options that leave out all plugins of other distributions."""
    plugins = sorted({candidate.distribution for candidate in installed() if not candidate.builtin})
    return " ".join(f"--no-plugin {name}" for name in plugins)


FLOOR = Contestant("FLOOR", "python {floor}")
HTTP_FLOOR = Contestant("FLOOR over HTTP", "python {floor} --port {port}")
OURS = (
    Contestant("deepwork", "deepwork serve --path {project}"),
    Contestant("core", f"deepwork serve --path {{project}} {_without_plugins()}"),
    Contestant("deepwork over HTTP", "deepwork serve --path {project} --transport http --port {port}"),
)
COMMAND = Contestant("deepwork", "deepwork sessions list")


def answering(file: Path) -> Contestant:
    """Make a FLOOR that has the tools with large answers too."""
    return Contestant("FLOOR with large answers", f"python {{floor}} --answer {shlex.quote(str(file))}")


class Server:
    """A contestant that has been started, greeted and asked for its tools."""

    def __init__(self, process: Process, connection: Connection, port: int) -> None:
        self.process = process
        self.connection = connection
        self._port = port
        self._further: list[HttpConnection] = []
        connection.greet()
        answer = connection.ask("tools/list", {})
        self.ready_wall = answer.arrived - process.spawned
        self.ready_cpu = process.cpu()
        self.ready_mib = process.mib()
        tools = connection.result(answer)["tools"]
        self.parameters = {tool["name"]: set(tool["inputSchema"].get("properties", {})) for tool in tools}

    @property
    def leads_workflows(self) -> bool:
        """True if it has the tools of our server."""
        return self.parameters.keys() >= WORKFLOW_TOOLS

    def call(self, tool: str, **arguments: object) -> Answer:
        """Call a tool and wait for its answer."""
        return self.connection.call(tool, arguments)

    def connections(self, count: int) -> list[Connection]:
        """Return so many connections: over HTTP they are opened when needed, over pipes there is one."""
        if isinstance(self.connection, PipeConnection):
            return [self.connection]
        while len(self._further) < count:
            further = HttpConnection(self.process, self.connection.era, self._port)
            further.greet()
            self._further.append(further)
        return [*self._further[:count]]

    def start_workflow(self, job: str, workflow: str = "main", connection: Connection | None = None) -> Started:
        """Start a workflow."""
        arguments = {"goal": "To be measured", "job_name": job, "workflow_name": workflow}
        answer = (connection or self.connection).call("start_workflow", arguments)
        begin_step = answer.message["result"]["structuredContent"]["begin_step"]
        return Started(answer, begin_step["session_id"], begin_step["step_id"])

    def report(self, session_id: str, step_id: str) -> Call:
        """Make the call that reports a step of the jobs of `projects.py`; only with arguments that the tool has."""
        arguments: Params = {
            "session_id": session_id,
            "step_id": step_id,
            "outputs": {f"{step_id}.md": f"{step_id}.md"},
        }
        taken = self.parameters["finished_step"]
        return "finished_step", {name: value for name, value in arguments.items() if name in taken}

    def finish(self, session_id: str, step_id: str) -> Answer:
        """Report a step, and see to it that it was accepted."""
        answer = self.connection.call(*self.report(session_id, step_id))
        self.check_accepted(answer.message["result"])
        return answer

    def check_accepted(self, result: Params) -> None:
        """See to it that a step was accepted: a refused one may cost less."""
        status = result["structuredContent"]["status"]
        if status not in ("next_step", "workflow_complete"):
            raise self.process.complaint(f"answered {status!r} to finished_step")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in [self.connection, *self._further]:
            if isinstance(connection, HttpConnection):
                connection.close()
        self.process.kill()


@dataclass(frozen=True)
class Started:
    """The answer to `start_workflow`."""

    answer: Answer
    session_id: str
    step_id: str


@dataclass
class Launcher:
    """Starts commands the way a user does, each in its project, with nothing of this run's user."""

    folder: Path
    era: Era
    _logs: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DEEPWORK_", "FASTMCP_")) and name != "PYTHONDONTWRITEBYTECODE"
        }
        self.env = {
            **variables,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), variables.get("PATH", os.defpath)]),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }

    def start(self, contestant: Contestant, project: Path) -> Server:
        """Start a server; the answer of `tools/list` has arrived when this returns.

        Raises:
            ContestantError: It does not start, or does not speak as it has to.
        """
        port = _free_port() if contestant.over_http else 0
        command = self._filled(contestant, project, port)
        process = self.run(command, project, piped=not contestant.over_http, env=contestant.env)
        try:
            if contestant.over_http:
                return Server(process, HttpConnection(process, self.era, port), port)
            return Server(process, PipeConnection(process, self.era), port)
        except BaseException:
            process.kill()
            raise

    def run(
        self, command: Sequence[str], folder: Path, *, piped: bool = False, env: Mapping[str, str] | None = None
    ) -> Process:
        """Start a command. Programs are found on the path, that of this Python's environment first."""
        program = _program(command[0], self.env["PATH"])
        log = self.folder / f"{next(self._logs)}.log"
        return Process([program, *command[1:]], folder=folder, env={**self.env, **(env or {})}, log=log, piped=piped)

    @contextmanager
    def started(self, contestant: Contestant, project: Path) -> Iterator[Server]:
        """Start a server, and end it afterwards."""
        with self.start(contestant, project) as server:
            yield server

    def _filled(self, contestant: Contestant, project: Path, port: int) -> list[str]:
        try:
            return [
                word.format(project=project, port=port, floor=FLOOR_SCRIPT) for word in shlex.split(contestant.command)
            ]
        except (KeyError, IndexError, ValueError) as error:
            raise ContestantError(f"the command of {contestant.name!r} cannot be read: {error!r}") from None


def _program(name: str, path: str) -> str:
    program = shutil.which(name, path=path)
    if program is None:
        raise ContestantError(f"there is no program {name!r} on the path")
    return program


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
