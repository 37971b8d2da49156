"""Several servers and agents at work on the same sessions; every acknowledged change must be there, once."""

from __future__ import annotations

import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from report import TOLD_EVERY, Report
from sample_project import ENTRIES, Project, inconsistencies, make_project, stored_sessions
from servers import TRANSPORTS, AnyServer, tracebacks
from stores import opened_store

from deepwork.models.sessions import Session
from deepwork.testing import Gone, Refused

SHARED = 3
CURRENT = re.compile(r"the current step is '(\w+)'; nothing was changed")

Change = tuple[str, str, str]  # session, what happened, and the path or reason that is this one call's own


class Pool:
    """The sessions that all agents work on, and the changes acknowledged to each."""

    def __init__(self, project: Project, deadline: float, most_changes: int | None) -> None:
        self.project = project
        self._deadline = deadline
        self._most_changes = most_changes or sys.maxsize
        self.open_steps: dict[str, list[str]] = {}  # of each session, as the last reply had it
        self.acknowledged: list[Change] = []
        self.lost = 0
        self.complaints: list[str] = []

    @property
    def is_over(self) -> bool:
        """True if the time is up, or enough was changed."""
        return time.monotonic() >= self._deadline or len(self.acknowledged) >= self._most_changes

    def work(self, server: AnyServer, name: str) -> None:
        """Be one agent: report random steps of shared sessions until it is over."""
        dice = random.Random(name)
        number = 0
        while not self.is_over:
            number += 1
            shared = [*self.open_steps]
            if len(shared) < SHARED:
                self._start(server, name)
                continue
            session_id = dice.choice(shared)
            try:
                self._change(server, dice, session_id, f"{name}-{number}")
            except Refused as refused:
                self._lost(session_id, str(refused))
            except (Gone, TimeoutError) as error:
                self.complaints.append(f"{name} got no answer: {error!r}")
                return

    def _start(self, server: AnyServer, name: str) -> None:
        reply = server.call("start_workflow", goal=name, job_name="demo", workflow_name="main")
        self._acknowledge(reply["begin_step"]["session_id"], "started", name, reply["begin_step"])

    def _change(self, server: AnyServer, dice: random.Random, session_id: str, own: str) -> None:
        steps = self.open_steps.get(session_id, ["a"])
        if dice.random() < 0.01:
            server.call("abort_workflow", explanation=own, session_id=session_id)
            self._acknowledge(session_id, "aborted", own, None)
            return
        step = dice.choice(steps if dice.random() < 0.9 else [step for entry in ENTRIES for step in entry])
        self.project.write(f"{own}.md")
        reply = server.call("finished_step", outputs={f"{step}.md": f"{own}.md"}, session_id=session_id, step_id=step)
        self._acknowledge(session_id, step, f"{own}.md", reply.get("begin_step"))

    def _lost(self, session_id: str, text: str) -> None:
        """Learn from the refusal where the session is now."""
        if current := CURRENT.search(text):
            self.open_steps[session_id] = next([*entry] for entry in ENTRIES if current[1] in entry)
        elif "is over" in text:
            self.open_steps.pop(session_id, None)
        else:
            self.complaints.append(text[:300])
            return
        self.lost += 1

    def _acknowledge(self, session_id: str, what: str, own: str, begun: dict[str, Any] | None) -> None:
        self.acknowledged.append((session_id, what, own))
        if begun is None:
            self.open_steps.pop(session_id, None)
        else:
            members = [member["step_id"] for member in begun.get("concurrent_steps", [])]
            self.open_steps[session_id] = [begun["step_id"], *members]


def changes(session: Session) -> list[Change]:
    """List what a history tells of calls, in the form of acknowledgements."""
    found: list[Change] = []
    for event in session.history:
        if event.kind == "started":
            found.append((session.session_id, "started", event.stored["goal"]))
        elif event.kind == "aborted":
            found.append((session.session_id, "aborted", event.stored["explanation"]))
        elif event.kind == "step_completed" and event.step_id and event.stored.get("reported", True):
            found.append((session.session_id, event.step_id, event.stored["outputs"][f"{event.step_id}.md"]))
    return found


def contention(
    servers: int, agents: int, seconds: float, most_changes: int | None, transport: str, store: str, seed: int
) -> int:
    """Let servers compete, and say what was lost or done twice."""
    until = f"until {most_changes:,} changes" if most_changes else f"for {seconds:g} s"
    report = Report(f"contention: {servers} servers ({transport}, {store}) x {agents} agents {until}, seed {seed}")
    with (
        tempfile.TemporaryDirectory(prefix="deepwork-contention-") as folder,
        opened_store(store, Path(folder)) as opened,
    ):
        project = make_project(Path(folder), opened)
        kinds = TRANSPORTS[transport]
        running = [kinds[number % len(kinds)](project.root, env=opened.env) for number in range(servers)]
        pool = Pool(project, time.monotonic() + seconds, most_changes)
        threads = [
            threading.Thread(target=pool.work, args=[server, f"{seed}-{number}-{agent}"])
            for number, server in enumerate(running)
            for agent in range(agents)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(TOLD_EVERY)
                if thread.is_alive():
                    print(f"contention: {len(pool.acknowledged):,} changes acknowledged", file=sys.stderr, flush=True)
        for server in running:
            server.close()
        sessions, unreadable = stored_sessions(project)
        logged = tracebacks(project.root)
    stored = Counter(change for session in sessions.values() for change in changes(session))
    # A second abort gets the recorded reply, and does not count.
    aborts = Counter(session_id for session_id, what, _ in stored if what == "aborted")
    promised = [change for change in pool.acknowledged if change[1] != "aborted" or change in stored]
    report.fact("sessions", len(sessions))
    report.fact("changes acknowledged", len(promised))
    report.fact("calls that lost a race and were told so", pool.lost)
    missing = [one for one in promised if one not in stored]
    missing += [one for one in pool.acknowledged if one[1] == "aborted" and not aborts[one[0]]]
    report.promise("acknowledged changes missing in a history", [f"{one}" for one in missing])
    report.promise("changes in a history more than once", [f"{one}" for one, times in stored.items() if times > 1])
    report.promise("changes that nobody was told of", [f"{one}" for one in stored if one not in set(promised)])
    report.promise("sessions aborted twice", [name for name, times in aborts.items() if times > 1])
    report.promise("histories inconsistent", [line for one in sessions.values() for line in inconsistencies(one)])
    report.promise("session files unreadable", unreadable)
    report.promise("answers that were neither a reply nor a clear refusal", pool.complaints)
    report.promise("tracebacks in the servers' logs", logged)
    return report.finish()
