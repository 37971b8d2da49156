"""Projects with much in them: many jobs, many sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import yaml

from bench.calls import SESSIONS_A_ROUND, Timed, lead
from bench.client import Answer, Cost
from bench.contestants import COMMAND, Contestant, Server, answering
from bench.measure import Run, p50
from bench.projects import add_jobs, add_sessions, copied, make_project

NEXT_CALLS = 5
ABOUT_AN_ANSWER = 400  # bytes on the wire that are not the text, which stands in an answer twice


def crowded(run: Run) -> Path:
    """Return the project with everything in it, made once a run."""
    root = run.folder / "crowded"
    if not root.exists():
        _with_many_sessions(run, _with_many_jobs(run, root))
    return root


def _with_many_jobs(run: Run, root: Path) -> Path:
    make_project(root)
    add_jobs(root, run.sizes.jobs - 1)
    return root


def _with_many_sessions(run: Run, root: Path) -> Path:
    add_sessions(root, run.launcher, finished=run.sizes.finished, active=run.sizes.active)
    return root


def measure_listing(run: Run) -> None:
    """List many jobs, first by a new server, then again."""
    contestants = run.piped(leading=True)
    if not contestants:
        return
    project = _with_many_jobs(run, run.folder / "listing")
    with ExitStack() as ended:
        answer = run.folder / "answer.json"
        server = ended.enter_context(run.launcher.started(contestants[0], project))
        reply = server.call("get_workflows")
        answer.write_text(json.dumps(reply.message["result"]["structuredContent"]))
        server.process.kill()
        floor = ended.enter_context(run.launcher.started(answering(answer), run.folder))
        for _ in run.rounds("listing", repeats=max(2, run.repeats // 2)):
            parsed = _parse(project)
            for contestant in contestants:
                with run.launcher.started(contestant, project) as server:
                    before = server.process.cpu()
                    first = server.call("get_workflows")
                    first_cpu = server.process.cpu() - before
                    size = (first.size - ABOUT_AN_ANSWER) // 2
                    texts, text_cpu = _repeat(floor, "text", size=size)
                    tables, _ = _repeat(floor, "table")
                    again, again_cpu = _repeat(server, "get_workflows")
                run.add("list.first", contestant, first.seconds * 1000, parsed.wall * 1000)
                run.add("list.first.cpu", contestant, first_cpu * 1000, parsed.cpu * 1000)
                run.add("list.next", contestant, again, texts)
                run.add("list.next.cpu", contestant, again_cpu, text_cpu)
                run.add("list.next.table", contestant, again, tables)


def _repeat(server: Server, tool: str, **arguments: object) -> tuple[float, float]:
    """Return the p50 of some calls, and their processor time, in milliseconds."""
    before = server.process.cpu()
    answers: list[Answer] = [server.call(tool, **arguments) for _ in range(NEXT_CALLS)]
    cpu = (server.process.cpu() - before) * 1000 / NEXT_CALLS
    return p50([answer.seconds for answer in answers]) * 1000, cpu


def _parse(project: Path) -> Cost:
    """Read and parse the job files as plainly as can be."""
    start, before = time.perf_counter(), time.process_time()
    for file in sorted((project / ".deepwork" / "jobs").glob("*/job.yml")):
        yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader)
    return Cost(time.perf_counter() - start, time.process_time() - before)


def measure_crowd(run: Run) -> None:
    """Compare calls in a crowded project with the same calls in an empty one."""
    if contestants := run.piped(leading=True):
        empty = make_project(run.folder / "empty")
        for contestant, few, many in _led_in_both(run, "crowded project", contestants, (empty, crowded(run))):
            run.add("crowd.start", contestant, p50(many.start), p50(few.start))
            run.add("crowd.finish", contestant, p50(many.finish), p50(few.finish))
            run.add("crowd.cpu", contestant, p50(many.finish_cpu), p50(few.finish_cpu))


def measure_growth(run: Run) -> None:
    """Compare `finished_step` beside many jobs, and beside many sessions, with the same beside hardly any.

    It is of the first contestant that leads workflows.
    """
    if contestants := run.piped(leading=True)[:1]:
        one_job, two_sessions, many_sessions = (
            make_project(run.folder / name) for name in ("one-job", "two-sessions", "many-sessions")
        )
        add_sessions(two_sessions, run.launcher, finished=1, active=1)
        pairs = {
            "jobs": (one_job, _with_many_jobs(run, run.folder / "many-jobs")),
            "sessions": (two_sessions, _with_many_sessions(run, many_sessions)),
        }
        for axis, projects in pairs.items():
            for contestant, few, many in _led_in_both(run, f"growth with {axis}", contestants, projects):
                run.add(f"growth.{axis}", contestant, p50(many.finish), p50(few.finish))


def _led_in_both(
    run: Run, subject: str, contestants: Sequence[Contestant], projects: tuple[Path, Path]
) -> Iterator[tuple[Contestant, Timed, Timed]]:
    """Yield in each round what calls have taken in copies of two projects."""
    with ExitStack() as ended:
        servers = []
        for contestant in contestants:
            copies = [copied(project, f"{project.name}-{contestant.name}") for project in projects]
            servers.append(
                (contestant, [ended.enter_context(run.launcher.started(contestant, copy)) for copy in copies])
            )
        for _ in run.rounds(subject):
            for contestant, (in_first, in_second) in servers:
                first, second = Timed(), Timed()
                for _ in range(SESSIONS_A_ROUND):
                    lead(in_first, first)
                    lead(in_second, second)
                yield contestant, first, second


def measure_sessions(run: Run) -> None:
    """Compare a command that lists sessions with another that does nothing."""
    project = crowded(run)

    def cpu(*arguments: str) -> float:
        process = run.launcher.run(["deepwork", *arguments], project)
        used = process.wait()
        if process.popen.returncode:
            raise process.complaint(f"exited with {process.popen.returncode}")
        return used * 1000

    for _ in run.rounds("sessions list"):
        nothing = cpu("--version")
        listing = cpu("sessions", "list")
        run.add("sessions.cpu", COMMAND, listing, nothing)
