"""Starting, ending and memory."""

from __future__ import annotations

from contextlib import ExitStack

from bench.contestants import FLOOR, Contestant, Server
from bench.measure import Run
from bench.projects import JOB, make_project, step_ids


def measure_start(run: Run) -> None:
    """Start and end each contestant in turn."""
    project = make_project(run.folder / "start")

    def live(contestant: Contestant) -> dict[str, float]:
        with run.launcher.started(contestant, project) as server:
            ended = server.process.end()
            return {
                "start": server.ready_wall * 1000,
                "start.cpu": server.ready_cpu * 1000,
                "memory.start": server.ready_mib,
                "exit": ended.wall * 1000,
                "exit.cpu": ended.cpu * 1000,
            }

    for _ in run.rounds("start and exit"):
        floor = live(FLOOR)
        for contestant in run.piped():
            for key, value in live(contestant).items():
                run.add(key, contestant, value, floor[key])


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
