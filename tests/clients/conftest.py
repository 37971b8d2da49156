"""One journey through a packaged workflow, which every client makes."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml

from deepwork.testing.wire import PATIENCE

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
UNAVAILABLE = 69

CORE = {"get_workflows", "start_workflow", "finished_step", "abort_workflow"}
SLOW = "# Tour\n\nThis one is slow to read.\n"
SHORT = "# Tour\n\nThe project counts words.\n"
WHOLE = SHORT + "\nTry it: `python words.py README.md`\n"


@pytest.fixture(scope="session")
def node_clients():
    """The folder of the programs that node runs, installed once for all workers."""
    process = subprocess.run([sys.executable, ROOT / "tools" / "clients.py"], capture_output=True, text=True)
    if process.returncode == UNAVAILABLE and not os.environ.get("CI"):
        pytest.skip(f"THE CLIENTS THAT NEED NODE ARE NOT TESTED: {process.stderr.strip()}")
    assert process.returncode == 0, process.stderr
    return Path(process.stdout.strip())


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home without any set-up, for the clients and for what they start."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith(("XDG_", "ANTHROPIC_", "CLAUDE", "MCP_", "NODE_")):
            monkeypatch.delenv(name)
    return folder


@pytest.fixture
def on_path(node_clients, home, monkeypatch):
    """The programs that node runs come first in PATH."""
    monkeypatch.setenv("PATH", f"{node_clients}{os.pathsep}{os.environ['PATH']}")


class Tour:
    """A project whose tour is reviewed by a program, which the user has trusted."""

    def __init__(self, project):
        self.project = project
        self.root = project.root
        shutil.copy(DATA / "reviewer.py", self.root)
        reviewer = {"run": [sys.executable, "reviewer.py"]}
        blocked = [name for name in os.environ["DEEPWORK_NO_PLUGINS"].split(",") if name]
        gate = {"runner": "reviewer", "commands": {"reviewer": reviewer}}
        config = {"quality_gate": gate, "plugins": {"block": blocked}}  # clients keep our environment from servers
        project.write(".deepwork/config.yml", yaml.safe_dump(config))
        trust = [sys.executable, "-m", "deepwork", "trust", "--yes", "--path", str(self.root)]
        subprocess.run(trust, check=True, capture_output=True)
        self.reading = self.root / "reading"
        self.pid = self.root / "server.pid"
        self.killed = False

    @property
    def command(self):
        """What a client is told to start; it leaves the server's pid behind."""
        leave_pid = f'echo $$ > {shlex.quote(str(self.pid))}; exec "$@"'
        serve = [sys.executable, "-m", "deepwork", "serve", "--path", str(self.root)]
        return ["sh", "-c", leave_pid, "serve", *serve]

    @asynccontextmanager
    async def served(self, transport):
        """Yield what a client connects to: a command to start, or the address of a server that listens."""
        if transport == "stdio":
            yield self.command
            return
        log = self.root / f"{transport}.log"
        with log.open("w") as stderr:
            command = [*self.command, "--transport", transport, "--port", "0"]
            process = await anyio.open_process(command, stdin=None, stdout=stderr, stderr=stderr)
        try:
            await until(lambda: "listening on" in log.read_text() or process.returncode is not None)
            match = re.search(r"listening on (http://\S+)", log.read_text())
            assert match, log.read_text()
            yield match[1]
        finally:
            if process.returncode is None:
                process.kill()
            await process.aclose()

    def kill_server(self):
        os.kill(int(self.pid.read_text()), signal.SIGKILL)
        self.killed = True

    @contextmanager
    def loses_its_server(self):
        """Let the connection end as it likes once the server has been killed: every client tells in its own way."""
        try:
            yield
        except Exception:
            if not self.killed:
                raise
        assert self.killed

    async def is_being_read(self):
        """Wait until the reviewer is at it, and give its pid."""
        await until(self.reading.exists)
        pid = int(self.reading.read_text())
        self.reading.unlink()
        return pid

    def session(self):
        [file] = self.project.state.glob("session_*.json")
        return json.loads(file.read_text())

    def history(self, *kinds):
        """What the session's history tells of these kinds of entries, in order."""
        return [entry["kind"] for entry in self.session()["history"] if entry["kind"] in kinds]


async def until(condition):
    """Wait until something has become true; the journey says how long."""
    while not condition():  # noqa: ASYNC110 - what happens in other processes has no event
        await anyio.sleep(0.02)


def is_gone(pid):
    """Whether a process has ended. In some containers orphaned processes are never reaped."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/status")
        return status.exists() and "\nState:\tZ" in status.read_text()
    except (ProcessLookupError, FileNotFoundError):
        return True


async def journey(tour, transport, connect):
    """Work through the packaged tour: judged slowly and cancelled, sent back, killed, come back, and passed.

    `connect(target)` is an async context manager that gives an agent with `tools()` and `call(tool, **arguments)`.
    """
    write = tour.project.write
    write("notes.md", "words.py: all of the code\n")
    with anyio.fail_after(PATIENCE):
        with tour.loses_its_server():
            async with tour.served(transport) as target, connect(target) as agent:
                assert set(await agent.tools()) == CORE
                chosen = {"job_name": "project_tour", "workflow_name": "write_tour"}
                begin = (await agent.call("start_workflow", goal="newcomers", **chosen))["begin_step"]
                named = {"session_id": begin["session_id"]}
                reply = await agent.call("finished_step", outputs={"notes": "notes.md"}, **named)
                assert reply["begin_step"]["step_id"] == "write"
                finish = partial(agent.call, "finished_step", outputs={"tour": "TOUR.md"}, **named)

                write("TOUR.md", SLOW)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(finish)
                    reviewer = await tour.is_being_read()
                    tasks.cancel_scope.cancel()
                await until(lambda: is_gone(reviewer))
                given_back = ["attempt", "attempt_given_back"]
                await until(lambda: tour.history(*given_back) == given_back)
                assert "project_tour" in [job["name"] for job in (await agent.call("get_workflows"))["jobs"]]

                write("TOUR.md", SHORT)
                reply = await finish()
                assert (reply["status"], reply["feedback"]) == ("needs_work", "It does not say how to try the project")

                write("TOUR.md", SLOW)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(finish)
                    reviewer = await tour.is_being_read()
                    tour.kill_server()
                    await until(lambda: is_gone(reviewer))
                    tasks.cancel_scope.cancel()  # over HTTP some clients wait for a server that is gone
        await until(lambda: is_gone(reviewer))
        async with tour.served(transport) as target, connect(target) as agent:
            write("TOUR.md", WHOLE)
            reply = await agent.call("finished_step", outputs={"tour": "TOUR.md"}, **named)
            assert reply["status"] == "workflow_complete"
    assert reply["all_outputs"] == {"notes": "notes.md", "tour": "TOUR.md"}
    assert tour.session()["status"] == "completed"
    assert tour.history("verdict", "step_completed") == ["step_completed", "verdict", "verdict", "step_completed"]


class Program:
    """A program on a terminal of its own: what it has started gets Ctrl-C too."""

    def __init__(self, process, folder):
        self._process = process
        self._folder = folder

    @classmethod
    async def start(cls, command, folder):
        folder.mkdir()
        with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
            process = await anyio.open_process(
                command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=folder, start_new_session=True
            )
        return cls(process, folder)

    @property
    def stdout(self):
        return (self._folder / "stdout").read_text()

    @property
    def stderr(self):
        return (self._folder / "stderr").read_text()

    @property
    def has_ended(self):
        return self._process.returncode is not None

    async def end(self):
        """Wait for its end, and give the exit code."""
        return await self._process.wait()

    async def ctrl_c(self):
        """Press Ctrl-C, and see the program end."""
        with anyio.fail_after(10, shield=True):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGINT)
            await self.end()

    async def put_away(self):
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.aclose()


@pytest.fixture(name="until")
def _until():
    return until


@pytest.fixture
async def run(tmp_path):
    """Start a program on a terminal: `program = await run(*command)`."""
    programs = []

    async def run(*command):
        programs.append(await Program.start(command, tmp_path / f"program {len(programs)}"))
        return programs[-1]

    yield run
    for program in programs:
        await program.put_away()


@pytest.fixture
def tour(home, project, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")  # clients keep it from servers, and what is trusted is kept there
    return Tour(project)


@pytest.fixture
def travel(tour):
    """Make the journey: `await travel(transport, connect)`."""

    async def travel(transport, connect):
        await journey(tour, transport, connect)

    return travel
