"""Measure what this plugin promises: `python plugins/deepwork_tracking/tools/figures_tracking.py [NAME …]`.

The names are `complete`, `latency`, `listeners` and `reconnect`. The last three run on SQLite and, where it is
installed, on PostgreSQL. `fuzz_changes.py` beside this file compares the files charged to tasks with the truth.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from fastmcp import Client
from websockets.asyncio.client import ClientConnection, connect

from deepwork.api import open_context
from deepwork.server import create_server
from deepwork_sql import Transaction
from deepwork_sql.cluster import NoPostgres, running_cluster
from deepwork_tracking import log, phases, tasks, workflows
from deepwork_tracking.records import Records
from deepwork_tracking.snapshots import Snapshot

FILES, CHANGED, ROUNDS = 20_000, 40, 15
EVENTS, LISTENERS, MISSED = 200, 100, 10_000
POLL_MS = {"sqlite": 100, "postgresql": 0}


def git(root: Path, *arguments: str) -> bytes:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "gc.auto=0"]
    return subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True).stdout


def make_repository(root: Path) -> None:
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for number in range(FILES):
        folder = root / f"d{number // 1000}" / f"e{number // 100 % 10}"
        if number % 100 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file_{number % 100}.py").write_text(f"x = {number}\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "base")
    time.sleep(1.1)  # or git would have to look into files that are as young as its index
    git(root, "status", "--porcelain")


def by_hand(root: Path, start: str) -> float:
    """Run the commands that the specification names, and give the seconds they take."""
    began = time.perf_counter()
    git(root, "rev-parse", "HEAD")
    git(root, "diff", start, "HEAD", "--name-status", "-z")
    git(root, "diff", "HEAD", "--name-status", "-z")
    git(root, "ls-files", "-z", "--others", "--exclude-standard")
    return time.perf_counter() - began


async def complete(folder: Path) -> None:
    """Compare `complete_task` with its git commands, turn by turn."""
    root = folder / "large"
    make_repository(root)
    whole, bare = [], []
    async with Client(create_server(root, tools=["tracking"])) as agent:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            return dict((await agent.call_tool(tool, arguments)).structured_content or {})

        workflow_id = (await call("start_workflow", name="w", objective="o"))["workflow_id"]
        phase_id = (await call("start_phase", workflow_id=workflow_id, number=1, name="p"))["phase_id"]
        who = {
            "workflow_id": workflow_id,
            "phase_id": phase_id,
            "caller_type": "orchestrator",
            "name": "t",
            "goal": "g",
        }
        for number in range(ROUNDS):
            task = await call("start_task", **who)
            for file in range(CHANGED):
                (root / f"d{file % 20}" / "e0" / f"file_{file}.py").write_text(f"round {number}\n")
                if file == CHANGED // 2:
                    git(root, "commit", "-q", "-a", "-m", "half")
            bare.append(by_hand(root, task["snapshot_id"]))
            began = time.perf_counter()
            done = await call("complete_task", task_id=task["task_id"], status="success", outcome={"summary": "s"})
            whole.append(time.perf_counter() - began)
            assert len(done["files_changed"]["modified"]) == CHANGED
            git(root, "commit", "-q", "-a", "-m", "rest")
    ratio = statistics.median(whole) / statistics.median(bare)
    print(
        f"complete_task in {FILES:,} files: {statistics.median(whole) * 1000:.0f} ms, its git commands by hand "
        f"{statistics.median(bare) * 1000:.0f} ms: {ratio:.2f} times (limit 2)"
    )


class Writer:
    """Records milestones in the database of a project, as a server does."""

    def __init__(self, records: Records, task_id: str) -> None:
        self._records = records
        self._task_id = task_id

    async def write(self, *messages: str, size: int = 0) -> float:
        """Write milestones in one transaction, and give the time of its commit."""

        def change(transaction: Transaction) -> None:
            for message in messages:
                values = {"message": message, "progress": None, "metadata": {"text": "x" * size}}
                log.log_milestone(transaction, self._task_id, principal="local", **values)

        await self._records.write(change)
        return time.perf_counter()


@asynccontextmanager
async def writer(root: Path) -> AsyncIterator[Writer]:
    """Begin a task, and give what logs for it."""
    async with open_context("tracking", root) as context:
        records = Records(context)
        snapshot = Snapshot(type="git", id="0", machine="m", toplevel="/", states={})

        def begin(transaction: Transaction) -> str:
            texts = {"name": "w", "objective": "o", "scope": None, "constraints": None}
            workflow = workflows.start_workflow(
                transaction, profile="simple", total_phases=None, principal="local", **texts
            )
            workflow_id = workflow["workflow_id"]
            about = {"name": "p", "description": None, "is_parallel": False, "principal": "local"}
            phase = phases.start_phase(transaction, workflow_id, 1, **about)
            who = {"caller_type": "orchestrator", "agent_name": None, "parent_task_id": None}
            place = {"workflow_id": workflow_id, "phase_id": phase["phase_id"]}
            more = {"name": "t", "goal": "g", "areas": [], "principal": "local"}
            return str(tasks.start_task(transaction, snapshot, **more, **who, **place)["task_id"])

        yield Writer(records, await records.write(begin))


@contextmanager
def serving(root: Path) -> Iterator[int]:
    """Serve the events of a project by a process of its own, and give the port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deepwork", "events", "--serve", "--path", str(root), "--port", str(port)]
    with (root / "events.log").open("w") as output, subprocess.Popen(command, stderr=output) as server:
        try:
            while server.poll() is None:
                with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield port
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def listen(port: int, query: str = "", **options: Any) -> connect:
    address = f"127.0.0.1:{port}"
    url = f"ws://{address}/plugins/tracking/events{query}"
    return connect(url, origin=f"http://{address}", proxy=None, compression=None, **options)  # type: ignore[arg-type]


async def lags_of(writer_: Writer, sockets: list[ClientConnection], number: int, size: int = 0) -> list[float]:
    """Write events at a calm pace, and give how late each socket has heard each of them, in milliseconds."""
    heard: dict[str, list[float]] = {}
    committed: dict[str, float] = {}

    async def hear(connection: ClientConnection) -> None:
        for _ in range(number):
            message = json.loads(await connection.recv())
            heard.setdefault(message["data"]["message"], []).append(time.perf_counter())

    async with anyio.create_task_group() as group:
        for connection in sockets:
            group.start_soon(hear, connection)
        for index in range(number):
            text = f"{time.time_ns()}-{index}"
            committed[text] = await writer_.write(text, size=size)
            await anyio.sleep(0.037)  # not in step with any poll
    return [(at - committed[text]) * 1000 for text, times in heard.items() for at in times]


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


async def latency(root: Path, engine: str) -> None:
    """Measure the time from a commit in this process to a listener of another one."""
    async with writer(root) as writer_:
        with serving(root) as port:
            async with listen(port) as connection:
                await writer_.write("warm")
                await connection.recv()
                lags = await lags_of(writer_, [connection], EVENTS)
    limit = POLL_MS[engine] + 50
    print(
        f"{engine}: commit to listener in another process: p50 {statistics.median(lags):.0f} ms, "
        f"p95 {p95(lags):.0f} ms (limit {limit} ms)"
    )


async def listeners(root: Path, engine: str) -> None:
    """Compare the lag of many listeners without and with one that does not read."""
    async with writer(root) as writer_:
        with serving(root) as port:
            async with AsyncExitStack() as stack:
                sockets = [await stack.enter_async_context(listen(port)) for _ in range(LISTENERS - 1)]
                alone = await lags_of(writer_, sockets, EVENTS // 2, size=2_000)
                await stack.enter_async_context(listen(port, max_queue=1, close_timeout=0))
                beside = await lags_of(writer_, sockets, EVENTS // 2, size=2_000)
    print(
        f"{engine}: {LISTENERS - 1} listeners: p50 {statistics.median(alone):.0f} ms, p95 {p95(alone):.0f} ms; beside "
        f"one that is stuck p50 {statistics.median(beside):.0f} ms, p95 {p95(beside):.0f} ms (limit: unchanged)"
    )


async def reconnect(root: Path, engine: str) -> None:
    """Let a listener connect again after many events, some of which come while it catches up."""
    async with writer(root) as writer_:
        with serving(root) as port:
            async with listen(port) as connection:
                await writer_.write("first")
                last = json.loads(await connection.recv())["id"]
            for start in range(0, MISSED, 500):
                await writer_.write(*(str(number) for number in range(start, start + 500)))
            began = time.perf_counter()
            async with listen(port, f"?since={last}") as connection, anyio.create_task_group() as group:
                group.start_soon(writer_.write, *(str(number) for number in range(MISSED, MISSED + 100)))
                heard = [json.loads(await connection.recv()) for _ in range(MISSED + 100)]
            seconds = time.perf_counter() - began
    is_right = [message["data"]["message"] for message in heard] == [str(number) for number in range(MISSED + 100)]
    different = len({message["id"] for message in heard})
    print(
        f"{engine}: connected again after {MISSED:,} events: {different:,} of {MISSED + 100:,} heard, "
        f"{'each once and in order' if is_right else 'NOT each once in order'}, in {seconds:.1f} s"
    )


@contextmanager
def engines(folder: Path) -> Iterator[Iterator[tuple[str, str]]]:
    """Give a new database of each engine: its name and URL."""

    def each() -> Iterator[tuple[str, str]]:
        yield "sqlite", f"sqlite:///{tempfile.mkdtemp(dir=folder)}/figures.db"
        try:
            with running_cluster() as server, server.new_database() as url:
                yield "postgresql", url
        except NoPostgres as error:
            print(f"postgresql: left out: {error}")

    yield each()


def on_engines(figure: Callable[[Path, str], Any], folder: Path) -> None:
    with engines(folder) as databases:
        for engine, url in databases:
            os.environ["DEEPWORK_DATABASE_URL"] = url
            root = Path(tempfile.mkdtemp(dir=folder))
            anyio.run(figure, root, engine)
            del os.environ["DEEPWORK_DATABASE_URL"]


def main(names: list[str]) -> None:
    """Print the figures of these names, or all."""
    logging.disable()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(os.path.realpath(place))
        for name in ("config", "state"):
            os.environ[f"XDG_{name.upper()}_HOME"] = str(folder / name)
        shared = {"latency": latency, "listeners": listeners, "reconnect": reconnect}
        for name in names or ["complete", *shared]:
            if name == "complete":
                anyio.run(complete, folder)
            else:
                on_engines(shared[name], folder)


if __name__ == "__main__":
    main(sys.argv[1:])
