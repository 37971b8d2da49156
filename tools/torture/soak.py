"""One server serves calls for a long time: it may not grow, leak descriptors or threads, or become slower."""

from __future__ import annotations

import itertools
import os
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import Progress, Report
from sample_project import ENTRIES, Project, make_project
from servers import TRANSPORTS, AnyServer, answer_text, tracebacks

from deepwork.programs.work_queue import MAX_THREADS
from deepwork.testing import Refused

AGENTS = 4
WARM_UP = 1000
MINUTE = 60.0
MOST_GROWTH = 20 * 1024  # KiB
MOST_SLOWER = 1.5

STEPS = [one for primary, *members in ENTRIES for one in (*members, primary)]

# Of a hundred calls; starts come when there is nothing to go on with.
MIX = {"finish": 60, "get_workflows": 12, "read": 12, "abort": 2, "repeat": 4, "lost": 4, "wrong": 4, "unknown": 2}


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
        self._seed = seed
        self._began = time.monotonic()
        self.taken: list[tuple[float, float]] = []  # when it was answered, and how long that took
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self, calls: int, tell: Callable[[], None], *, turn: int) -> None:
        """Make calls, by several agents at once."""
        left = itertools.repeat(None, calls)
        taking = threading.Lock()

        def work(name: str) -> None:
            agent = Worker(self._server, self._project, random.Random(name))
            while True:
                with taking:
                    if next(left, "none") == "none":
                        return
                self._time(agent.next_call)
                tell()

        threads = [threading.Thread(target=work, args=[f"{self._seed} {turn} {number}"]) for number in range(AGENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _time(self, call: Callable[[], tuple[str, str]]) -> None:
        began = time.monotonic()
        kind, complaint = call()
        ended = time.monotonic()
        self.taken.append((ended - self._began, ended - began))
        self.counts[kind] += 1
        if complaint:
            self.wrong.append(f"{kind}: {complaint}")

    def p99(self, first: float, last: float) -> float:
        """Return the time, in ms, that one call in a hundred took longer than in this part of the run."""
        found = sorted(taken for moment, taken in self.taken if first <= moment <= last)
        return found[len(found) * 99 // 100] * 1000


class Worker:
    """An agent that does everything that agents do, mistakes included. Its sessions are its own."""

    def __init__(self, server: AnyServer, project: Project, dice: random.Random) -> None:
        self._server = server
        self._project = project
        self._dice = dice
        self._session_id = ""
        self._done = 0

    def next_call(self) -> tuple[str, str]:
        """Make one call; return its kind, and what was wrong with the answer."""
        kind = self._dice.choices([*MIX], [*MIX.values()])[0] if self._session_id else "start"
        if kind == "repeat" and not self._done:
            kind = "finish"
        try:
            return kind, getattr(self, f"_{kind}")()
        except Refused as refused:
            return kind, str(refused)

    def _start(self) -> str:
        begun = self._server.call("start_workflow", goal="last", job_name="demo", workflow_name="main")["begin_step"]
        self._session_id, self._done = begun["session_id"], 0
        return ""

    def _finish(self) -> str:
        complaint = self._report(STEPS[self._done])
        self._done += 1
        if self._done == len(STEPS):
            self._forget()
        return complaint

    def _repeat(self) -> str:
        return self._report(STEPS[self._done - 1])

    def _report(self, step: str) -> str:
        outputs = {f"{step}.md": f"{step}.md"}
        reply = self._server.call("finished_step", outputs=outputs, session_id=self._session_id, step_id=step)
        expected = "workflow_complete" if step == STEPS[-1] else "next_step"
        return "" if reply["status"] == expected else f"{step}: {reply}"

    def _abort(self) -> str:
        reply = self._server.call("abort_workflow", explanation="enough", session_id=self._session_id)
        self._forget()
        return "" if reply["aborted_workflow"] == "demo/main" else f"{reply}"

    def _get_workflows(self) -> str:
        jobs = [job["name"] for job in self._server.call("get_workflows")["jobs"]]
        return "" if "demo" in jobs else f"{jobs}"

    def _read(self) -> str:
        text = self._server.ask("resources/read", uri=f"deepwork://sessions/{self._session_id}")["contents"][0]["text"]
        return "" if "Now at step" in text else text

    def _lost(self) -> str:
        return self._refused("Now at step", outputs={}, session_id=self._session_id, step_id="?")

    def _wrong(self) -> str:
        return self._refused("wrong arguments", outputs="a.md", session_id=self._session_id)

    def _unknown(self) -> str:
        return self._refused("not found", outputs={}, session_id="f" * 32, step_id="a")

    def _refused(self, words: str, **arguments: Any) -> str:
        text = answer_text(self._server, "finished_step", **arguments)
        return "" if words in text else text or "it was not refused"

    def _forget(self) -> None:
        """Remove a session that is over, as `deepwork sessions clean` does, or lists of them would grow for ever."""
        (self._project.state / f"session_{self._session_id}.json").unlink()
        self._session_id = ""


def soak(calls: int, transport: str, seed: int) -> int:
    """Make all these calls, and say how the server has changed by them."""
    report = Report(f"soak: {calls:,} calls by {AGENTS} agents to one server on {transport}, seed {seed}")
    progress = Progress("soak", calls)
    with tempfile.TemporaryDirectory(prefix="deepwork-soak-") as folder:
        project = make_project(Path(folder))
        server = TRANSPORTS[transport][0](project.root)
        run = Soak(server, project, seed)
        run.run(min(WARM_UP, calls // 10), progress.step, turn=0)
        before = Size.of(server.process.pid)
        run.run(calls - len(run.taken), progress.step, turn=1)
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
    report.promise("answers that were wrong", run.wrong)
    report.promise("tracebacks in the server's log", logged)
    return report.finish()
