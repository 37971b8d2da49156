"""Two connections start, finish and abort in any order, through any ids; a model says what their stacks must be."""

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio.from_thread
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from deepwork.testing import DeepworkProject, Refused, step

FLOWS = ("one", "two", "three", "four", "five")
STEPS = ("a", "b")
UNKNOWN = "0" * 32


@dataclass
class Known:
    """What the model knows of a session."""

    flow: str
    parents: list[str]
    finished_steps: int = 0
    status: str = "active"

    @property
    def entry(self):
        return {"workflow": f"demo/{self.flow}", "step": STEPS[self.finished_steps]}


@dataclass
class Side:
    """A connection: a server object with two clients in memory, and the stack that the model gives it."""

    agents: list
    stack: list[str] = field(default_factory=list)


class Stacks(RuleBasedStateMachine):
    sessions = Bundle("sessions")
    sides = st.sampled_from([0, 1])
    clients = st.sampled_from([0, 1])

    def __init__(self):
        super().__init__()
        self.closing = ExitStack()
        self.portal = self.closing.enter_context(anyio.from_thread.start_blocking_portal())
        folder = self.closing.enter_context(tempfile.TemporaryDirectory())
        project = DeepworkProject(Path(folder))
        project.write_job("demo", [step(name, outputs={}) for name in STEPS], dict.fromkeys(FLOWS, STEPS))
        self.connections = [Side([self.connect(project, server) for _ in range(2)]) for server in self.serve(project)]
        self.known: dict[str, Known] = {}
        self.last_stack = None

    def serve(self, project):
        return [project.server(), project.server()]

    def connect(self, project, server):
        return self.closing.enter_context(self.portal.wrap_async_context_manager(project.agent(server)))

    def teardown(self):
        self.closing.close()

    @rule(target=sessions, side=sides, client=clients, flow=st.sampled_from(FLOWS))
    def start(self, side, client, flow):
        """Without a parent, what is on top is the parent."""
        active = self.active_on(side)
        return self.started(side, client, flow, parent=active[-1] if active else None, named={})

    @rule(target=sessions, side=sides, client=clients, flow=st.sampled_from(FLOWS), parent=sessions)
    def start_under(self, side, client, flow, parent):
        named = {"parent_session_id": parent}
        if self.known[parent].status == "active":
            return self.started(side, client, flow, parent=parent, named=named)
        assert "is over" in self.refused(side, client, "start_workflow", **self.asked(flow), **named)
        return multiple()

    @rule(side=sides, client=clients, flow=st.sampled_from(FLOWS))
    def start_under_an_unknown_one(self, side, client, flow):
        text = self.refused(side, client, "start_workflow", **self.asked(flow), parent_session_id=UNKNOWN)
        assert "not found" in text

    @rule(side=sides, client=clients)
    def finish_the_top(self, side, client):
        active = self.active_on(side)
        if active:
            self.finished(side, active[-1], self.call(side, client, "finished_step", outputs={}))
        else:
            assert "No active workflow session" in self.refused(side, client, "finished_step", outputs={})

    @rule(side=sides, client=clients, session_id=sessions)
    def finish(self, side, client, session_id):
        """Finish the current step of any session, of an ended one the last step again."""
        session = self.known[session_id]
        names = {"session_id": session_id, "step_id": STEPS[session.finished_steps]}
        if session.status == "aborted":
            assert "is over" in self.refused(side, client, "finished_step", outputs={}, **names)
            return
        reply = self.call(side, client, "finished_step", outputs={}, **names)
        if session.status == "active":
            self.adopt(side, session_id)
            self.finished(side, session_id, reply)
        assert reply["stack"] == self.stack_of(side)

    @rule(side=sides, client=clients, session_id=sessions)
    def finish_a_completed_step_again(self, side, client, session_id):
        session = self.known[session_id]
        if session.finished_steps or session.status == "completed":
            self.call(side, client, "finished_step", outputs={}, session_id=session_id, step_id="a")
            if session.status == "active":
                self.adopt(side, session_id)

    @rule(side=sides, client=clients, session_id=sessions)
    def ask_where_it_is(self, side, client, session_id):
        reply = self.call(side, client, "finished_step", outputs={}, session_id=session_id, step_id="?")
        if self.known[session_id].status == "active":
            self.adopt(side, session_id)
            assert f"Now at step {STEPS[self.known[session_id].finished_steps]!r}" in reply["feedback"]
        else:
            assert "there is nothing left to report" in reply["summary"]

    @rule(side=sides, client=clients)
    def abort_the_top(self, side, client):
        active = self.active_on(side)
        if active:
            self.aborted(side, active[-1], self.call(side, client, "abort_workflow", explanation="enough"))
        else:
            assert "No active workflow session" in self.refused(side, client, "abort_workflow", explanation="enough")

    @rule(side=sides, client=clients, session_id=sessions)
    def abort(self, side, client, session_id):
        call = {"explanation": "enough", "session_id": session_id}
        status = self.known[session_id].status
        if status == "completed":
            assert "is over" in self.refused(side, client, "abort_workflow", **call)
            return
        reply = self.call(side, client, "abort_workflow", **call)
        if status == "active":
            self.adopt(side, session_id)
            self.aborted(side, session_id, reply)
        assert reply["stack"] == self.stack_of(side)

    @rule(side=sides, client=clients, session_id=consumes(sessions))
    def forget(self, side, client, session_id):
        """Fewer known ones make deeper stacks of them."""

    @invariant()
    def a_reply_shows_the_stack_of_its_connection(self):
        if self.last_stack:
            side, stack = self.last_stack
            assert stack == self.stack_of(side)
            self.last_stack = None

    def asked(self, flow):
        return {"goal": "g", "job_name": "demo", "workflow_name": flow}

    def call(self, side, client, tool, **arguments):
        reply = self.portal.call(lambda: self.connections[side].agents[client].call(tool, **arguments))
        self.last_stack = (side, reply["stack"])
        return reply

    def refused(self, side, client, tool, **arguments):
        try:
            self.call(side, client, tool, **arguments)
        except Refused as error:
            return str(error)
        raise AssertionError(f"{tool} was to refuse")

    def started(self, side, client, flow, *, parent, named):
        reply = self.call(side, client, "start_workflow", **self.asked(flow), **named)
        session_id = reply["begin_step"]["session_id"]
        self.known[session_id] = Known(flow, [*self.known[parent].parents, parent] if parent else [])
        self.adopt(side, session_id)
        return session_id

    def finished(self, side, session_id, reply):
        session = self.known[session_id]
        over = session.finished_steps + 1 == len(STEPS)
        assert reply["status"] == ("workflow_complete" if over else "next_step")
        session.finished_steps += not over
        session.status = "completed" if over else "active"

    def aborted(self, side, session_id, reply):
        session = self.known[session_id]
        assert (reply["aborted_workflow"], reply["aborted_step"]) == (
            f"demo/{session.flow}",
            STEPS[session.finished_steps],
        )
        session.status = "aborted"
        top = (self.stack_of(side) or [{"workflow": None, "step": None}])[-1]
        assert (reply["resumed_workflow"], reply["resumed_step"]) == (top["workflow"], top["step"])

    def adopt(self, side, session_id):
        """The recorded parents that are active, then the session, go on top; what is there keeps its place."""
        stack = self.connections[side].stack
        for ancestor in [*self.known[session_id].parents, session_id]:
            if ancestor not in stack and self.known[ancestor].status == "active":
                stack.append(ancestor)

    def active_on(self, side):
        return [session_id for session_id in self.connections[side].stack if self.known[session_id].status == "active"]

    def stack_of(self, side):
        return [self.known[session_id].entry for session_id in self.active_on(side)]


TestStacks = Stacks.TestCase
TestStacks.settings = settings(max_examples=30, stateful_step_count=30)
