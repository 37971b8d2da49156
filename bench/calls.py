"""Single durable calls, and many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.client import drive
from bench.contestants import FLOOR, HTTP_FLOOR, Contestant, Server
from bench.goals import BY_KEY
from bench.measure import Run, p50
from bench.projects import JOB, STEPS, durable_replace, make_project, session_bytes, step_ids

SESSIONS_A_ROUND = 5


@dataclass
class Timed:
    """Milliseconds of calls, and of processor time for each."""

    start: list[float] = field(default_factory=list)
    finish: list[float] = field(default_factory=list)
    finish_cpu: list[float] = field(default_factory=list)


def lead(server: Server, timed: Timed) -> None:
    """Start a workflow and finish all of its steps, one call after the other."""
    started = server.start_workflow(JOB)
    timed.start.append(started.answer.seconds * 1000)
    before = server.process.cpu()
    for step_id in step_ids():
        timed.finish.append(server.finish(started.session_id, step_id).seconds * 1000)
    timed.finish_cpu.append((server.process.cpu() - before) * 1000 / STEPS)


def measure_steps(run: Run) -> None:
    """Compare durable calls with what they cannot do without: an answered call, and durable writes."""
    contestants = [*run.piped(leading=True), *run.databases]
    if not contestants:
        return
    with ExitStack() as ended:
        floor = ended.enter_context(run.launcher.started(FLOOR, run.folder))
        projects = {
            contestant.name: make_project(run.folder / f"steps-{contestant.name}") for contestant in contestants
        }
        servers = {
            contestant.name: ended.enter_context(run.launcher.started(contestant, projects[contestant.name]))
            for contestant in contestants
        }
        for _ in run.rounds("durable steps"):
            for contestant in contestants:
                # Each takes its turn for several sessions: the median has no call that found the caches full of others.
                own = Timed()
                for _ in range(SESSIONS_A_ROUND):
                    lead(servers[contestant.name], own)
                content = b"x" * session_bytes(projects[contestants[0].name])
                replaces = [durable_replace(run.folder, content) * 1000 for _ in range(SESSIONS_A_ROUND * STEPS)]
                before = floor.process.cpu()
                echoes = [floor.call("echo", text="hello").seconds * 1000 for _ in range(SESSIONS_A_ROUND * STEPS)]
                echo_cpu = (floor.process.cpu() - before) * 1000 / len(echoes)
                unavoidable = p50(echoes) + 2 * p50(replaces)
                run.add("step.start", contestant, p50(own.start), unavoidable)
                run.add("step.finish", contestant, p50(own.finish), unavoidable)
                run.add("step.cpu", contestant, p50(own.finish_cpu), echo_cpu)


def measure_flight(run: Run) -> None:
    """Have 8 and 32 sessions in flight on one connection."""
    for in_flight in (8, 32):
        _fly(run, f"flight.{in_flight}", FLOOR, [*run.piped(leading=True), *run.databases], in_flight)


def measure_http(run: Run) -> None:
    """Have 8 connections over HTTP, each with one session."""
    _fly(run, "flight.http", HTTP_FLOOR, run.over_http(), 8)


def _fly(run: Run, key: str, floor: Contestant, contestants: Sequence[Contestant], in_flight: int) -> None:
    if not contestants:
        return
    with ExitStack() as ended:
        base = ended.enter_context(run.launcher.started(floor, run.folder))
        servers = []
        for contestant in contestants:
            project = make_project(run.folder / f"{key}-{contestant.name}")
            servers.append((contestant, ended.enter_context(run.launcher.started(contestant, project))))
        calls = in_flight * run.sizes.reports
        for _ in run.rounds(f"{in_flight} in flight{' over HTTP' if floor.over_http else ''}"):
            echoes = [iter([("echo", {"text": "hello"})] * run.sizes.reports) for _ in range(in_flight)]
            floor_seconds, _ = drive(base.connections(in_flight), echoes)
            for contestant, server in servers:
                connections = server.connections(in_flight)
                sessions = [
                    server.start_workflow(JOB, connection=connections[place % len(connections)]).session_id
                    for place in range(in_flight)
                ]
                ids = step_ids()[: run.sizes.reports]
                lanes = [iter([server.report(session_id, step_id) for step_id in ids]) for session_id in sessions]
                before = server.process.cpu()
                seconds, replies = drive(connections, lanes)
                used = (server.process.cpu() - before) * 1000 / calls
                for result in replies:
                    server.check_accepted(result)
                run.add(key, contestant, calls / seconds, calls / floor_seconds)
                if f"{key}.cpu" in BY_KEY:
                    alone = Timed()
                    lead(server, alone)
                    run.add(f"{key}.cpu", contestant, used, alone.finish_cpu[0])
                if run.sizes.reports < STEPS:
                    for session_id in sessions:
                        server.call("abort_workflow", session_id=session_id, explanation="Measured")
