"""Agents that record the acknowledgements that they get, and the comparison with the store."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from report import Progress, Report
from sample_project import ENTRIES, inconsistencies, make_project, stored_sessions
from servers import TRANSPORTS, AnyServer, answer_text, tracebacks
from stores import Store

from deepwork.models.sessions import Session
from deepwork.testing import Gone, Refused

AGENTS = 3
TIMES_PER_PROJECT = 20
LONGEST_LIFE = 0.15


@dataclass(frozen=True)
class State:
    """What is known of a session."""

    index: int = 0
    done: frozenset[str] = frozenset()
    status: str = "active"

    @property
    def step(self) -> str:
        return ENTRIES[min(self.index, len(ENTRIES) - 1)][0]

    def reported(self, step: str) -> State:
        entry = ENTRIES[self.index]
        if step != entry[0]:
            return replace(self, done=self.done | {step})
        over = self.index + 1 == len(ENTRIES)
        return State(self.index + (not over), self.done | {*entry}, "completed" if over else "active")

    @staticmethod
    def stored(session: Session) -> State:
        done = frozenset(step.step_id for step in session.step_progress.values() if step.completed_at)
        return State(session.current_entry_index, done, str(session.status))


@dataclass
class Run:
    """One session as its agent knows it: the last acknowledged state, and the call that is under way."""

    session_id: str
    state: State = State()
    call: tuple[str, dict[str, Any]] | None = None
    then: State = State()

    def next_call(self, dice: random.Random) -> None:
        """Choose what to call, and note which state it leads to."""
        if dice.random() < 0.05:
            self.call = ("abort_workflow", {"explanation": "enough", "session_id": self.session_id})
            self.then = replace(self.state, status="aborted")
            return
        step = dice.choice([one for one in ENTRIES[self.state.index] if one not in self.state.done])
        named = {"session_id": self.session_id, "step_id": step}
        self.call = ("finished_step", {"outputs": {f"{step}.md": f"{step}.md"}, **named})
        self.then = self.state.reported(step)

    def acknowledged(self) -> None:
        self.state, self.call = self.then, None


class Agent:
    """Starts and advances sessions until its server is gone."""

    def __init__(self, seed: str) -> None:
        self._dice = random.Random(seed)
        self.runs: list[Run] = []
        self.is_starting = False
        self.acknowledged: Counter[str] = Counter()
        self.refused: list[str] = []

    def work(self, server: AnyServer, answered: threading.Event) -> None:
        while True:
            active = [run for run in self.runs if run.state.status == "active"]
            try:
                if len(active) < 2 or self._dice.random() < 0.05:
                    self._start(server)
                else:
                    run = self._dice.choice(active)
                    run.next_call(self._dice)
                    self._repeat(server, run)
                answered.set()
            except Gone:
                return

    def repeat_unanswered(self, server: AnyServer) -> None:
        """Send again what got no answer."""
        for run in [*self.runs]:
            self._repeat(server, run)

    def _start(self, server: AnyServer) -> None:
        self.is_starting = True
        reply = server.call("start_workflow", goal="survive", job_name="demo", workflow_name="main")
        self.runs.append(Run(reply["begin_step"]["session_id"]))
        self.is_starting = False
        self.acknowledged["starts"] += 1

    def _repeat(self, server: AnyServer, run: Run) -> None:
        if run.call is None:
            return
        tool, arguments = run.call
        try:
            server.call(tool, **arguments)
        except Refused as refused:
            self.refused.append(f"{tool} {arguments}: {refused}")
            self.runs.remove(run)
            return
        run.acknowledged()
        self.acknowledged["aborts" if tool == "abort_workflow" else "completions"] += 1


class Victim:
    """One project, its agents, and what was found wrong in it."""

    def __init__(
        self, root: Path, seed: str, *, logs: Path | None = None, store: Store | None = None, transport: str = "stdio"
    ) -> None:
        self.project = make_project(root, store)
        self.env = {**self.project.store.env}
        self._transport = transport
        self.root = root
        self.logs = logs or root
        self.dice = random.Random(seed)
        self.agents = [Agent(f"{seed} {number}") for number in range(AGENTS)]
        self.found: dict[str, list[str]] = {}
        self.counts: Counter[str] = Counter()

    def suffer(self, times: int, tell: Callable[[], None]) -> None:
        """Let agents work and end their server, again and again; check after each end."""
        for _ in range(times):
            self.once()
            self.counts["ends"] += 1
            tell()
        server = self.open()
        self.check(server)
        server.close()
        for agent in self.agents:
            self.counts.update(agent.acknowledged)
            self.found.setdefault("refused", []).extend(agent.refused)
        if logged := tracebacks(self.logs):
            self.complain("tracebacks", f"{logged} in {self.logs.name}")

    def once(self) -> None:
        """Start a server, check what it finds, and end it while agents are at work."""
        server = self.open()
        self.check(server)
        with self.working(server):
            self.end(server)

    def open(self) -> AnyServer:
        """Start a server on any of the transports."""
        kind = self.dice.choice(TRANSPORTS[self._transport])
        return kind(self.root, env=self.env, logs=self.logs)

    def end(self, server: AnyServer) -> None:
        """Do to a server what it has to survive."""
        server.kill()

    @contextmanager
    def working(self, server: AnyServer) -> Iterator[None]:
        """Let all agents work for a random time; in the block the server has to be ended."""
        answered = threading.Event()
        threads = [threading.Thread(target=agent.work, args=[server, answered]) for agent in self.agents]
        for thread in threads:
            thread.start()
        if self.dice.random() < 0.8:  # a server's first call is slow: few ends would hit another one
            answered.wait(60)
        time.sleep(self.dice.uniform(0, LONGEST_LIFE))
        self.counts["in flight"] += server.unanswered
        yield
        for thread in threads:
            thread.join()

    def check(self, server: AnyServer) -> None:
        """Compare the store with the acknowledgements, and have every session resumed."""
        sessions, unreadable = stored_sessions(self.project)
        for name in unreadable:
            self.complain("unreadable", name)
        for session in sessions.values():
            for wrong in inconsistencies(session):
                self.complain("half-applied", wrong)
        known = {run.session_id for agent in self.agents for run in agent.runs}
        for agent in self.agents:
            for run in agent.runs:
                self._check_run(server, run, sessions.get(run.session_id))
            agent.repeat_unanswered(server)
        self._adopt_unacknowledged([session for name, session in sessions.items() if name not in known])

    def _check_run(self, server: AnyServer, run: Run, session: Session | None) -> None:
        """Find the acknowledged state, or that to which the call under way leads, and nothing in between."""
        if session is None:
            self.complain("starts lost", run.session_id)
            return
        found = State.stored(session)
        if found != run.state and not (run.call and found == run.then):
            lost = "aborts lost" if run.state.status == "aborted" else "completions lost"
            kind = lost if found.done < run.state.done or found.status == "active" else "half-applied"
            self.complain(kind, f"{run.session_id}: {found}, acknowledged was {run.state}")
            return
        self.counts["completed unacknowledged"] += run.call is not None and found == run.then
        if found.status != "active":
            return
        self.counts["resumed"] += 1
        text = answer_text(server, "finished_step", outputs={}, session_id=run.session_id, step_id="?")
        if f"Now at step {found.step!r}" not in text:
            self.complain("not resumed", f"{run.session_id} at {found.step!r}: {text[:200]}")

    def _adopt_unacknowledged(self, sessions: list[Session]) -> None:
        """Account for unknown sessions: there may be one for each start that was cut off, quite fresh."""
        starting = [agent for agent in self.agents if agent.is_starting]
        for agent in self.agents:
            agent.is_starting = False
        for session in sessions:
            if not starting or State.stored(session) != State():
                self.complain("half-applied", f"{session.session_id}: nobody has started it")
                continue
            starting.pop().runs.append(Run(session.session_id))
            self.counts["unacknowledged"] += 1

    def complain(self, kind: str, text: str) -> None:
        """Note how a promise was broken."""
        self.found.setdefault(kind, []).append(text)


def torment(
    name: str, count: int, seed: int, made: Callable[[Path, str], AbstractContextManager[Victim]]
) -> list[Victim]:
    """End servers this often, in several projects and two at a time."""
    sizes = [min(TIMES_PER_PROJECT, count - done) for done in range(0, count, TIMES_PER_PROJECT)]
    if len(sizes) == 1 and count > 1:
        sizes = [count - count // 2, count // 2]
    progress = Progress(name, count)

    def one(number: int) -> Victim:
        with (
            tempfile.TemporaryDirectory(prefix=f"deepwork-{name}-") as folder,
            made(Path(folder), f"{seed} {number}") as victim,
        ):
            victim.suffer(sizes[number], progress.step)
            return victim

    with ThreadPoolExecutor(2) as pool:
        return [*pool.map(one, range(len(sizes)))]


def tell_losses(report: Report, victims: list[Victim], *, ends: str) -> None:
    """Report what was done to servers, and which acknowledged changes were lost."""
    counts = sum((victim.counts for victim in victims), Counter())
    report.fact(ends, counts["ends"])
    report.fact("calls in flight at those moments", counts["in flight"])
    report.fact("starts, acknowledged", counts["starts"])
    report.fact("completions, acknowledged", counts["completions"])
    report.fact("aborts, acknowledged", counts["aborts"])
    report.fact("starts, done but not acknowledged", counts["unacknowledged"])
    report.fact("other calls, done but not acknowledged", counts["completed unacknowledged"])
    report.promise("acknowledged starts lost", complaints(victims, "starts lost"))
    report.promise("acknowledged completions lost", complaints(victims, "completions lost"))
    report.promise("acknowledged aborts lost", complaints(victims, "aborts lost"))
    report.promise("session files unreadable", complaints(victims, "unreadable"))
    report.promise("calls half applied, histories inconsistent", complaints(victims, "half-applied"))
    resumed = counts["resumed"]
    strayed = complaints(victims, "not resumed")
    report.promise("sessions resumed on the right step", resumed - len(strayed), resumed)
    report.promise("calls refused that were right", complaints(victims, "refused"))
    report.promise("tracebacks in the servers' logs", complaints(victims, "tracebacks"))


def complaints(victims: list[Victim], kind: str) -> list[str]:
    """Join what was noted of one kind."""
    return [text for victim in victims for text in victim.found.get(kind, [])]
