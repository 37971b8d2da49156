"""What a call of each tool takes, beside FLOOR and RAW. `figures_orchestration.py calls` prints it.

FLOOR is a call of the echo tool of a minimal FastMCP server. RAW is the statements of the same calls, recorded and run
again through sqlite3 and psycopg on a copy of the database. All three take turns on the same machine, and the servers
are real ones that are called over their pipes.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import anyio
import psycopg
from bench.client import Cost, Era, PipeConnection, Process
from fastmcp import Client
from sqlalchemy import Engine, event

from deepwork.server import create_server
from deepwork_orchestration.tools import ALL
from deepwork_sql.cluster import running_cluster

ENGINES = ("sqlite", "postgresql")
SMALL, LARGE = (1, 50), (200, 200)
CALLS = 20
FLOOR = Path(__file__).parents[3] / "bench" / "floor.py"

Mapped = dict[str, Any]
Statement = tuple[str, Any, Mapped]


@dataclass(frozen=True)
class Times:
    """Milliseconds of a call over a server's pipes, and of its statements alone; p50."""

    served: Cost
    raw: Cost


def measure(engine: str, workflows: int, tasks: int) -> tuple[Cost, dict[str, Times]]:
    """Give the time of FLOOR's call and of each tool's, in a database of so many workflows of so many tasks."""
    with tempfile.TemporaryDirectory() as folder, _databases(engine, Path(folder)) as database:
        os.environ["DEEPWORK_DATABASE_URL"] = database.url
        calls = anyio.run(_fill, folder, workflows, tasks)
        copies = [database.copy(), database.copy()]
        with _recorder(engine) as recorder:
            statements = anyio.run(_record, folder, calls, recorder)
        return _take_turns(Path(folder), calls, statements, copies)


# Databases, and copies of them.


class _Database:
    """A database that can be copied while nobody uses it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._copies = 0

    def copy(self) -> str:
        """Make a copy, and give its URL."""
        self._copies += 1
        url = f"{self.url}_{self._copies}"
        if self.url.startswith("sqlite"):
            with sqlite3.connect(_file(self.url)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            shutil.copyfile(_file(self.url), _file(url))
            return url
        parts = urlsplit(self.url)
        name = parts.path.removeprefix("/")
        with psycopg.connect(urlunsplit(parts._replace(path="/postgres")), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}_{self._copies}" TEMPLATE "{name}"')
        return url


@contextmanager
def _databases(engine: str, folder: Path) -> Iterator[_Database]:
    if engine == "sqlite":
        yield _Database(f"sqlite:///{folder}/plan.db")
        return
    with running_cluster() as cluster, cluster.new_database() as url:
        yield _Database(url)


def _file(url: str) -> str:
    return url.removeprefix("sqlite:///")


# What is called.


async def _fill(folder: str, workflows: int, tasks: int) -> dict[str, list[Mapped]]:
    """Make the plans and whatever the calls need, and give the arguments of the calls of each tool, in their order."""
    async with Client(create_server(folder, tools=["orchestration"])) as client:

        async def call(tool: str, **arguments: Any) -> Any:
            return (await client.call_tool(tool, arguments)).structured_content

        source = {"source_type": "prompt", "source_content": "Do it."}
        planned = [{"name": f"t{n}", "description": "Do it.", "sequence": 1 + n // 10} for n in range(tasks)]
        for number in range(workflows):
            workflow = (await call("workflow_create", name=f"w{number}", **source))["id"]
            await call("workflow_set_plan", id=workflow, plan={"summary": "s", "approach": "a", "tasks": planned})
        listed = (await call("workflow_get", id=workflow, include_tasks=True))["tasks"]
        ids = [task["id"] for task in listed[:CALLS]]
        agent = (await call("agent_register", name="a", runtime="custom", role="coordinator"))["id"]
        leaving = [(await call("agent_register", name="b", runtime="custom"))["id"] for _ in ids]
        message = {"sender_id": agent, "recipient_id": agent, "message_type": "query", "body": "?"}
        messages = [(await call("message_send", **message))["id"] for _ in ids]
        empty = [(await call("workflow_create", name="e", **source))["id"] for _ in ids]
        await call("workflow_update_status", id=workflow, status="in_progress")
        few = {"tasks": planned[:5]}
        template = (await call("template_create", name="few", template=few))["id"]
        place = {"workflow_id": workflow, "branch": "b"}
        workspace = (await call("workspace_create", **place, path="/w"))["id"]
    return _calls(
        ids,
        leaving,
        messages,
        empty,
        source=source,
        planned=planned[:50],
        agent=agent,
        workflow=workflow,
        message=message,
        template=template,
        few=few,
        place=place,
        workspace=workspace,
    )


def _calls(ids: list[str], leaving: list[str], messages: list[str], empty: list[str], **x: Any) -> dict[str, Any]:
    mine, about, plan = {"agent_id": x["agent"]}, {"workflow_id": x["workflow"]}, {"approach": "a", "steps": ["s"]}
    turns = [("paused", "in_progress")[n % 2] for n in range(CALLS)]
    states = [("abandoned", "active")[n % 2] for n in range(CALLS)]
    first = {"task_id": ids[0]}

    def same(**arguments: Any) -> list[Mapped]:
        return [arguments] * CALLS

    calls = {
        "workflow_create": same(name="w", **x["source"]),
        "workflow_get": same(id=x["workflow"]),
        "workflow_list": same(),
        "workflow_set_plan": [
            {"id": one, "plan": {"summary": "s", "approach": "a", "tasks": x["planned"]}} for one in empty
        ],
        "workflow_update_status": [{"id": x["workflow"], "status": status} for status in turns],
        "workflow_set_parallelism": same(id=x["workflow"], max_parallel_tasks=4),
        "workflow_get_summary": same(id=x["workflow"]),
        "workflow_next_tasks": same(**about),
        "workflow_progress": same(**about),
        "task_get_available": same(**mine),
        "task_claim": [{"task_id": one, **mine} for one in ids],
        "task_update_status": [{"id": one, "status": "planning", **mine} for one in ids],
        "task_set_plan": [{"id": one, "plan": plan, **mine} for one in ids],
        "task_get": same(id=ids[0]),
        "checkpoint_add": same(**first, type="progress", summary="x", **mine),
        "checkpoint_list": same(**first, limit=20),
        "task_load_context": same(**first),
        "task_check_dependencies": same(**first),
        "task_assign_workspace": same(**first, workspace_id=x["workspace"]),
        # A task that is in planning has to begin before it can be planned anew.
        "begin": [{"id": one, "status": "in_progress", **mine} for one in ids],
        "task_replan": [{"id": one, "reason": "r", "new_plan": plan, **mine} for one in ids],
        "task_release": [{"task_id": one, **mine} for one in ids],
        "workspace_create": [{**x["place"], "path": f"/w{number}"} for number in range(CALLS)],
        "workspace_update": [{"id": x["workspace"], "status": status} for status in states],
        "workspace_list": same(**about),
        "repository_register": same(path="/r"),
        "repository_list": same(),
        "repository_get": same(path="/r"),
        "template_create": [{"name": f"n{number}", "template": x["few"]} for number in range(CALLS)],
        "template_list": same(),
        "template_apply": same(template_id=x["template"], workflow_name="w"),
        "agent_register": same(name="a", runtime="custom"),
        "agent_heartbeat": same(**mine),
        "agent_update": same(id=x["agent"], metadata={"n": 1}),
        "agent_get": same(id=x["agent"]),
        "agent_list": same(),
        "agent_unregister": [{"id": one} for one in leaving],
        "message_send": same(**x["message"]),
        "message_broadcast": same(
            sender_id=leaving[0], message_type="notification", body="!", recipient_filter={"role": "coordinator"}
        ),
        "message_list": same(**mine),
        "message_get": [{"id": one} for one in messages],
        "message_mark_read": [{"message_ids": [one]} for one in messages],
        "message_archive": [{"message_ids": [one]} for one in messages],
        "message_count_unread": same(**mine),
    }
    assert {*calls} == {*ALL, "begin"}
    return calls


def _name(tool: str) -> str:
    return "task_update_status" if tool == "begin" else tool


# RAW.


@dataclass
class Recorder:
    """What the drivers are told, by thread: others than that of a call may speak to the database too."""

    by_thread: dict[int, list[Statement]] = field(default_factory=dict)

    def note(self, sql: str, parameters: Any = None, **options: Any) -> None:
        """Note a statement."""
        self.by_thread.setdefault(threading.get_ident(), []).append((sql, parameters, options))

    def take(self) -> list[Statement]:
        """Give the transactions since the last time."""
        taken = [lines for lines in self.by_thread.values() if lines[0][0].startswith("BEGIN")]
        self.by_thread = {}
        return [line for lines in taken for line in lines]


@contextmanager
def _recorder(engine: str) -> Iterator[Recorder]:
    recorder = Recorder()
    with (_recorded_sqlite if engine == "sqlite" else _recorded_postgres)(recorder):
        yield recorder


@contextmanager
def _recorded_sqlite(recorder: Recorder) -> Iterator[None]:
    class RecordedCursor(sqlite3.Cursor):
        def execute(self, sql: str, parameters: Any = ()) -> Any:
            recorder.note(sql, parameters)
            return super().execute(sql, parameters)

        def executemany(self, sql: str, rows: Any) -> Any:
            recorder.note(sql, list(rows), many=True)
            return super().executemany(sql, rows)

    class RecordedConnection(sqlite3.Connection):
        def cursor(self, factory: Any = RecordedCursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, parameters: Any = ()) -> Any:
            return self.cursor().execute(sql, parameters)

        def commit(self) -> None:
            recorder.note("COMMIT")
            super().commit()

    def connect(_dialect: Any, _record: Any, _arguments: Any, options: Mapped) -> None:
        options["factory"] = RecordedConnection

    event.listen(Engine, "do_connect", connect)
    yield
    event.remove(Engine, "do_connect", connect)


@contextmanager
def _recorded_postgres(recorder: Recorder) -> Iterator[None]:
    execute, executemany, commit = psycopg.Cursor.execute, psycopg.Cursor.executemany, psycopg.Connection.commit

    def recorded_execute(self: Any, query: Any, parameters: Any = None, **options: Any) -> Any:
        recorder.note(query, parameters, **options)
        return execute(self, query, parameters, **options)

    def recorded_executemany(self: Any, query: Any, rows: Any, **options: Any) -> Any:
        recorder.note(query, list(rows), many=True, **options)
        return executemany(self, query, rows, **options)

    def recorded_commit(self: Any) -> None:
        recorder.note("COMMIT")
        commit(self)

    drivers: Any = psycopg
    drivers.Cursor.execute, drivers.Cursor.executemany = recorded_execute, recorded_executemany
    drivers.Connection.commit = recorded_commit
    yield
    drivers.Cursor.execute, drivers.Cursor.executemany, drivers.Connection.commit = execute, executemany, commit


async def _record(folder: str, calls: dict[str, list[Mapped]], recorder: Recorder) -> dict[str, list[list[Statement]]]:
    async with Client(create_server(folder, tools=["orchestration"])) as client:
        await client.call_tool("agent_list", {})
        recorder.take()
        statements: dict[str, list[list[Statement]]] = {}
        for tool, arguments in calls.items():
            for one in arguments:
                await client.call_tool(_name(tool), one)
                statements.setdefault(tool, []).append(recorder.take())
    return statements


def _raw(url: str) -> Callable[[str, Any, Mapped], None]:
    return _raw_sqlite(url) if url.startswith("sqlite") else _raw_postgres(url)


def _raw_sqlite(url: str) -> Callable[[str, Any, Mapped], None]:
    connection = sqlite3.connect(_file(url), isolation_level=None)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")

    def run(sql: str, parameters: Any, options: Mapped) -> None:
        if options.get("many"):
            connection.executemany(sql, parameters)
        else:
            connection.execute(sql, parameters or ()).fetchall()

    return run


def _raw_postgres(url: str) -> Callable[[str, Any, Mapped], None]:
    connection = psycopg.connect(url, autocommit=True)

    def run(sql: str, parameters: Any, options: Mapped) -> None:
        if options.get("many"):
            connection.cursor().executemany(sql, parameters)
            return
        cursor = connection.execute(sql, parameters, **options)
        if cursor.description:
            cursor.fetchall()

    return run


# By turns.


def _take_turns(
    folder: Path, calls: dict[str, list[Mapped]], statements: dict[str, list[list[Statement]]], urls: list[str]
) -> tuple[Cost, dict[str, Times]]:
    """Run each call's statements, serve it, and call FLOOR, so that all three meet the same machine."""
    command = [sys.executable, "-m", "deepwork", "serve", "--path", str(folder), "--tools", "orchestration"]
    database, run = {"DEEPWORK_DATABASE_URL": urls[0]}, _raw(urls[1])
    with _started(folder, [sys.executable, str(FLOOR)], {}) as floor, _started(folder, command, database) as server:
        server.call("agent_list", {})
        echoes: list[Cost] = []
        times = {}
        for tool, arguments in calls.items():
            served, raw = [], []
            for one, lines in zip(arguments, statements[tool], strict=True):
                echoes.append(_called(floor, "echo", {"text": "hello"}))
                served.append(_called(server, _name(tool), one))
                raw.append(_run(run, lines))
            times[tool] = Times(_summed(served), _summed(raw))
    return _summed(echoes), times


def _called(server: PipeConnection, tool: str, arguments: Mapped) -> Cost:
    before = server.process.cpu()
    seconds = server.call(tool, arguments).seconds
    return Cost(seconds * 1000, (server.process.cpu() - before) * 1000)


def _run(run: Callable[[str, Any, Mapped], None], lines: list[Statement]) -> Cost:
    begin, before = time.perf_counter(), time.thread_time()
    for line in lines:
        run(*line)
    return Cost((time.perf_counter() - begin) * 1000, (time.thread_time() - before) * 1000)


def _summed(costs: list[Cost]) -> Cost:
    return Cost(statistics.median(cost.wall for cost in costs), statistics.median(cost.cpu for cost in costs))


@contextmanager
def _started(folder: Path, command: list[str], environment: dict[str, str]) -> Iterator[PipeConnection]:
    process = Process(command, folder=folder, env=os.environ | environment, log=folder / "server.log")
    try:
        connection = PipeConnection(process, Era.HANDSHAKE)
        connection.greet()
        yield connection
    finally:
        process.kill()
