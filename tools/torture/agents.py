"""Agents that lead sessions through their workflow on any server, and remember what they were told."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sample_project import ENTRIES, STEPS, Project
from servers import answer_text

from deepwork.models.sessions import Session
from deepwork.testing import Refused

CURRENT = re.compile(r"the current step is '(\w+)'; nothing was changed")
# Of a hundred calls; an agent with too few sessions starts one instead.
LEADS = {"finish": 90, "start": 5, "abort": 5}
COMPETES = {"finish": 99, "abort": 1}
ERRS = {"finish": 60, "get_workflows": 12, "read": 12, "abort": 2, "repeat": 4, "lost": 4, "wrong": 4, "unknown": 2}

# A session, what happened to it, and a text of the call that did it.
Change = tuple[str, str, str]
# The steps of each open session that can be reported, as the last reply had it.
OpenSteps = dict[str, list[str]]


class Receiver(Protocol):
    """What agents call: a server, or what stands before servers."""

    def call(self, tool_name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its reply."""


@dataclass(frozen=True)
class Call:
    """A call that changes a session: `change` is what the history tells of it, with no session in that of a start."""

    tool: str
    arguments: Mapping[str, Any]
    change: Change


class Agent:
    """Makes one call after the other. Agents that share sessions lose races; an agent alone is always right."""

    def __init__(self, name: str, project: Project, mix: Mapping[str, int], *, shared: OpenSteps | None = None) -> None:
        self._name = name
        self._mix = mix
        self._least = 2 if shared is None else 3
        self._dice = random.Random(name)
        self._is_alone = shared is None
        self._last: Call | None = None
        # Each agent reports a file of its own, which tells its calls from those of the others.
        self._file = project.write(f"{name}.md").name
        self.open: OpenSteps = {} if shared is None else shared
        self.over: list[str] = []
        self.unanswered: Call | None = None
        self.acknowledged: Counter[Change] = Counter()  # how often: who has reported a member may do so again
        self.counts: Counter[str] = Counter()
        self.refused: list[str] = []

    def act(self, server: Receiver) -> str:
        """Choose a call and make it; return its kind."""
        sessions = [*self.open]
        kind = "start" if len(sessions) < self._least else self._dice.choices([*self._mix], [*self._mix.values()])[0]
        if kind == "start":
            self.make(server, self._start())
            return kind
        session_id = self._dice.choice(sessions)
        if kind == "repeat" and self._last and self._last.change[0] in self.open:
            self.make(server, self._last)
        elif kind in ("finish", "repeat"):
            self.make(server, self._report(session_id))
        elif kind == "abort":
            arguments = {"explanation": self._name, "session_id": session_id}
            self.make(server, Call("abort_workflow", arguments, (session_id, "aborted", self._name)))
        else:
            self._ask(server, kind, session_id)
        return kind

    def make(self, server: Receiver, call: Call) -> None:
        """Make a call; until its answer has come it is unanswered."""
        self.unanswered = call
        try:
            reply = server.call(call.tool, **call.arguments)
        except Refused as refused:
            self._learn(call, str(refused))
        else:
            self._acknowledge(call, reply.get("begin_step"))
        self.unanswered = None

    def settle(self, server: Receiver, stored: Collection[Change]) -> None:
        """Send a call again that got no answer; of a start, look whether its session is there."""
        call, self.unanswered = self.unanswered, None
        if call is None:
            return
        changes_of_call = [change for change in stored if is_of(change, call)]
        self.counts["done, not acknowledged"] += bool(changes_of_call)
        if not call.change[0]:
            self.acknowledged.update(changes_of_call)
            self.open.update({session_id: [*ENTRIES[0]] for session_id, _, _ in changes_of_call})
        else:
            self.make(server, call)

    def _start(self) -> Call:
        self.counts["started"] += 1
        goal = f"{self._name} {self.counts['started']}"
        arguments = {"goal": goal, "job_name": "demo", "workflow_name": "main"}
        return Call("start_workflow", arguments, ("", "started", goal))

    def _report(self, session_id: str) -> Call:
        steps = self.open.get(session_id, [*ENTRIES[0]])
        step = self._dice.choice(steps if self._is_alone or self._dice.random() < 0.9 else STEPS)
        arguments = {"outputs": {f"{step}.md": self._file}, "session_id": session_id, "step_id": step}
        return Call("finished_step", arguments, (session_id, step, self._file))

    def _acknowledge(self, call: Call, begin_step: dict[str, Any] | None) -> None:
        session_id, kind, text = call.change
        session_id = session_id or (begin_step or {})["session_id"]
        self._last = call
        self.acknowledged[session_id, kind, text] += 1
        if begin_step is None:
            self._end(session_id)
        else:
            members = [member["step_id"] for member in begin_step.get("concurrent_steps", [])]
            self.open[session_id] = [begin_step["step_id"], *members]

    def _learn(self, call: Call, text: str) -> None:
        """Learn from a refusal where the session is now; an agent alone should not have been refused."""
        session_id = call.change[0]
        if self._is_alone:
            self.refused.append(f"{call.tool} {call.arguments}: {text}")
            self._end(session_id)
        elif current := CURRENT.search(text):
            self.open[session_id] = next([*entry] for entry in ENTRIES if current[1] in entry)
            self.counts["lost"] += 1
        elif "is over" in text:
            self._end(session_id)
            self.counts["lost"] += 1
        else:
            self.refused.append(text[:300])

    def _end(self, session_id: str) -> None:
        if self.open.pop(session_id, None):
            self.over.append(session_id)

    def _ask(self, server: Any, kind: str, session_id: str) -> None:
        """Make a call that changes nothing, a wrong one perhaps; note an answer that does not fit."""
        if kind == "get_workflows":
            expected, text = "'demo'", str([job["name"] for job in server.call("get_workflows")["jobs"]])
        elif kind == "read":
            contents = server.ask("resources/read", uri=f"deepwork://sessions/{session_id}")["contents"]
            expected, text = "Now at step", contents[0]["text"]
        else:
            expected, arguments = {
                "lost": ("Now at step", {"outputs": {}, "session_id": session_id, "step_id": "?"}),
                "wrong": ("wrong arguments", {"outputs": "a.md", "session_id": session_id}),
                "unknown": ("not found", {"outputs": {}, "session_id": "f" * 32, "step_id": "a"}),
            }[kind]
            text = answer_text(server, "finished_step", **arguments)
        if expected not in text:
            self.refused.append(f"{kind}: {text}")


def is_of(change: Change, call: Call) -> bool:
    """True if this change came from that call."""
    return change[1:] == call.change[1:] and call.change[0] in ("", change[0])


def repeated(session: Session) -> Iterator[Change]:
    """Yield the changes that a history tells twice in a row, as if a call sent again had been another one.

    A member of a group may be reported again, with other outputs, and then as it was at first: those are three changes.
    """
    last: dict[str, Change] = {}
    for change in changes(session):
        if last.get(change[1]) == change:
            yield change
        last[change[1]] = change


def changes(session: Session) -> Iterator[Change]:
    """Yield what a history tells of calls."""
    for event in session.history:
        if event.kind == "started":
            yield session.session_id, "started", event.stored["goal"]
        elif event.kind == "aborted":
            yield session.session_id, "aborted", event.stored["explanation"]
        elif event.kind == "step_completed" and event.step_id and event.stored.get("reported", True):
            yield session.session_id, event.step_id, event.stored["outputs"][f"{event.step_id}.md"]
