"""One server serves calls for a long time: it may not grow, leak descriptors or threads, or become slower."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click
from agents import ERRS, Agent
from report import Progress, Report, seed_option
from sample_project import Project, tortured
from servers import TRANSPORTS, AnyServer, tracebacks

from deepwork.programs.work_queue import MAX_THREADS

AGENTS = 4
WARM_UP = 1000
MINUTE = 60.0
MOST_GROWTH = 20 * 1024  # KiB
MOST_SLOWER = 1.5


@dataclass(frozen=True)
class Size:
    """What a process takes of the machine while it is idle."""

    memory: int
    descriptors: int
    threads: int

    @staticmethod
    def of(pid: int) -> Size:
        """Measure a process that has had a moment to come to rest."""
        time.sleep(1)
        facts = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        memory = int(facts["VmRSS"].split()[0])
        return Size(memory, len(os.listdir(f"/proc/{pid}/fd")), int(facts["Threads"]))


class Soak:
    """The agents of a server, and how long their calls have taken."""

    def __init__(self, server: AnyServer, project: Project, seed: int) -> None:
        self._server = server
        self._project = project
        self._began = time.monotonic()
        self.agents = [Agent(f"{seed}-{number}", project, ERRS) for number in range(AGENTS)]
        self.taken: list[tuple[float, float]] = []  # when it was answered, and how long that took
        self.counts: Counter[str] = Counter()

    def run(self, calls: int, tell: Callable[[], None]) -> None:
        """Make calls, by several agents at once."""

        def work(agent: Agent) -> None:
            for _ in range(calls // AGENTS):
                self._time(agent)
                tell()

        with ThreadPoolExecutor(AGENTS) as pool:
            list(pool.map(work, self.agents))

    def _time(self, agent: Agent) -> None:
        began = time.monotonic()
        kind = agent.act(self._server)
        ended = time.monotonic()
        self.taken.append((ended - self._began, ended - began))
        self.counts[kind] += 1
        while agent.over:  # as `deepwork sessions clean` does, or lists of sessions would grow for ever
            # One that was set aside is not there; its agent was refused, which the report tells.
            (self._project.state / f"session_{agent.over.pop()}.json").unlink(missing_ok=True)

    def p99(self, first: float, last: float) -> float:
        """Return the time, in ms, that one call in a hundred took longer than in this part of the run."""
        times = sorted(taken for moment, taken in self.taken if first <= moment <= last)
        return times[len(times) * 99 // 100] * 1000


@click.command()
@click.option("--calls", default=100_000, show_default=True)
@click.option("--transport", type=click.Choice(["stdio", "http"]), default="stdio", show_default=True)
@seed_option
def soak(calls: int, transport: str, seed: int) -> None:
    """Make many calls to one server: it may neither grow nor become slower."""
    report = Report(f"soak: {calls:,} calls by {AGENTS} agents to one server on {transport}, seed {seed}")
    progress = Progress("soak", calls)
    with tortured("soak") as project:
        server = TRANSPORTS[transport][0](project.root)
        run = Soak(server, project, seed)
        run.run(min(WARM_UP, calls // 10), progress.step)
        before = Size.of(server.process.pid)
        run.run(calls - len(run.taken), progress.step)
        after = Size.of(server.process.pid)
        server.close()
        logged = tracebacks(project.root)
    end = run.taken[-1][0]
    for kind, count in sorted(run.counts.items()):
        report.fact(f"  {kind}", count)
    report.fact("calls a second", f"{len(run.taken) / end:.0f}")
    report.fact("memory after the first calls, MiB", f"{before.memory / 1024:.1f}")
    report.fact("memory at the end, MiB", f"{after.memory / 1024:.1f}")
    report.promise("KiB grown beyond 20 MiB", max(0, after.memory - before.memory - MOST_GROWTH))
    report.promise("descriptors more than before", max(0, after.descriptors - before.descriptors))
    # Queues add threads while a piece of work is slow, and let them go when they are idle.
    report.promise("threads more than queues may add", max(0, after.threads - before.threads - MAX_THREADS))
    if end < 2 * MINUTE:
        report.note("SKIPPED: p99 of the first and the last minute; the run was shorter than two")
    else:
        first, last = run.p99(0, MINUTE), run.p99(end - MINUTE, end)
        report.fact("p99 of the first minute, ms", f"{first:.1f}")
        report.fact("p99 of the last minute, ms", f"{last:.1f}")
        slower = [f"{first:.1f} ms, then {last:.1f} ms"] if last > MOST_SLOWER * first else []
        report.promise(f"p99 over {MOST_SLOWER:g} times that of the first minute", slower)
    report.promise("answers that were wrong", [text for agent in run.agents for text in agent.refused])
    report.promise("tracebacks in the server's log", logged)
    report.finish()
