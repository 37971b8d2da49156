"""How calls grow with jobs, sessions, steps, the depth of the stack, and the length of the history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.calls import Timed, lead
from bench.contestants import Contestant, Server
from bench.measure import Curve, Run, Spread, p50
from bench.projects import JOB, add_jobs, add_sessions, lengthen_history, make_project, step_ids

Sample = dict[str, float]
Sampler = Callable[[Server, int], Sample]
MEASURED_STEPS = 6


def measure_growth(run: Run) -> None:
    """Draw a curve for each axis, with the first contestant that leads workflows."""
    for contestant in run.piped(leading=True)[:1]:
        for axis, (prepare, sample) in _axes(run).items():
            _draw(run, contestant, axis, prepare, sample)


def _axes(run: Run) -> dict[str, tuple[Callable[[Path, int], None], Sampler]]:
    """Return for each axis how to make a project of a size, and what is measured in it."""

    def with_jobs(root: Path, size: int) -> None:
        make_project(root)
        add_jobs(root, size - 1)

    def with_sessions(root: Path, size: int) -> None:
        make_project(root)
        active = max(1, size // 11)
        add_sessions(root, run.launcher, finished=size - active, active=active)

    def with_steps(root: Path, size: int) -> None:
        make_project(root, steps=size)

    def plain(root: Path, _size: int) -> None:
        make_project(root)

    return {
        "jobs": (with_jobs, _listed_and_led),
        "sessions": (with_sessions, _led),
        "steps": (with_steps, lambda server, size: _led(server, size, steps=size)),
        "depth": (plain, _nested),
        "history": (plain, _history_sampler(run)),
    }


def _draw(run: Run, contestant: Contestant, axis: str, prepare: Callable[[Path, int], None], sample: Sampler) -> None:
    sizes = run.sizes.curves[axis]
    taken: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with ExitStack() as ended:
        servers = {}
        for size in sizes:
            root = run.folder / f"growth-{axis}-{size}"
            prepare(root, size)
            servers[size] = ended.enter_context(run.launcher.started(contestant, root))
        for number in run.rounds(f"growth with {axis}", repeats=max(2, run.repeats // 2)):
            samples = {size: sample(server, size) for size, server in servers.items()}
            if number == 0:
                continue
            for size, times in samples.items():
                for tool, milliseconds in times.items():
                    taken[tool][size].append(milliseconds)
            if axis in ("jobs", "sessions"):
                most, fewest = samples[sizes[-1]], samples[sizes[0]]
                run.add(f"growth.{axis}", contestant, most["finished_step"], fewest["finished_step"])
    lines = {tool: [Spread.of(by_size[size]) for size in sizes] for tool, by_size in taken.items()}
    run.curves.append(Curve(axis, list(sizes), lines))


def _led(server: Server, _size: int, *, steps: int = 18) -> Sample:
    timed = Timed()
    for _ in range(2):
        lead(server, timed, steps=steps)
    return {"start_workflow": p50(timed.start), "finished_step": p50(timed.finish)}


def _listed_and_led(server: Server, size: int) -> Sample:
    listing = p50([server.call("get_workflows").seconds * 1000 for _ in range(3)])
    return {"get_workflows": listing, **_led(server, size)}


def _nested(server: Server, size: int) -> Sample:
    """Nest workflows until the stack is so deep, and measure on top of it; then finish all of them."""
    below = [server.start_workflow(JOB).session_id for _ in range(size - 1)]
    top = server.start_workflow(JOB)
    finished = [server.finish(top.session_id, step_id).seconds * 1000 for step_id in step_ids()[:MEASURED_STEPS]]
    for session_id in [top.session_id, *reversed(below)]:
        server.call("abort_workflow", session_id=session_id, explanation="Measured")
    return {"start_workflow": top.answer.seconds * 1000, "finished_step": p50(finished)}


def _history_sampler(run: Run) -> Sampler:
    """Measure the first steps of a session that has been through much."""

    def sample(server: Server, size: int) -> Sample:
        session_id = server.start_workflow(JOB).session_id
        lengthen_history(run.folder / f"growth-history-{size}", session_id, size)
        finished = [server.finish(session_id, step_id).seconds * 1000 for step_id in step_ids()[:MEASURED_STEPS]]
        server.call("abort_workflow", session_id=session_id, explanation="Measured")
        return {"finished_step": p50(finished)}

    return sample
