"""Starting, ending and memory."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from bench.contestants import FLOOR, Contestant, Server
from bench.measure import Run
from bench.projects import JOB, make_project, step_ids


@dataclass(frozen=True)
class Life:
    """A server that was started, asked for its tools and ended; milliseconds and MiB."""

    ready: float
    ready_cpu: float
    mib: float
    exit: float
    exit_cpu: float


def measure_start(run: Run) -> None:
    """Start and end each contestant in turn."""
    project = make_project(run.folder / "start")

    def live(contestant: Contestant) -> Life:
        with run.launcher.started(contestant, project) as server:
            ended = server.process.end()
            return Life(
                server.ready_wall * 1000,
                server.ready_cpu * 1000,
                server.ready_mib,
                ended.wall * 1000,
                ended.cpu * 1000,
            )

    for _ in run.rounds("start and exit"):
        floor = live(FLOOR)
        for contestant in run.piped():
            life = live(contestant)
            run.add("start", contestant, life.ready, floor.ready)
            run.add("start.cpu", contestant, life.ready_cpu, floor.ready_cpu)
            run.add("memory.start", contestant, life.mib, floor.mib)
            run.add("exit", contestant, life.exit, floor.exit)
            run.add("exit.cpu", contestant, life.exit_cpu, floor.exit_cpu)


def measure_memory(run: Run) -> None:
    """Have each contestant answer many calls: whole workflows, and a `get_workflows` before each."""
    contestants = run.piped(leading=True)
    if not contestants:
        return
    projects = {contestant.name: make_project(run.folder / f"memory-{contestant.name}") for contestant in contestants}
    for _ in run.rounds("memory", repeats=min(run.repeats, 3), warm_up=False):
        with ExitStack() as ended:
            floor = ended.enter_context(run.launcher.started(FLOOR, run.folder))
            for _ in range(run.sizes.calls):
                floor.call("echo", text="hello")
            for contestant in contestants:
                server = ended.enter_context(run.launcher.started(contestant, projects[contestant.name]))
                _make_calls(server, run.sizes.calls)
                mib = server.process.mib()
                run.add("memory.calls", contestant, mib, server.ready_mib)
                run.add("memory.floor", contestant, mib, floor.process.mib())
                server.process.kill()


def _make_calls(server: Server, count: int) -> None:
    calls = 0
    while calls < count:
        server.call("get_workflows")
        session_id = server.start_workflow(JOB).session_id
        for step_id in step_ids():
            server.finish(session_id, step_id)
        calls += 2 + len(step_ids())
