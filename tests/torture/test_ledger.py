"""What the tortures hold against a history, and what not."""

from __future__ import annotations

from importlib import import_module

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def scene(torture_modules, tmp_path):
    """Two agents at the group of one session, and the ledger that compares their history."""
    agents, ledger = import_module("agents"), import_module("ledger")
    project = import_module("sample_project").make_project(tmp_path)
    server = import_module("servers").Server(project.root)
    shared = {}
    ann, bob = (agents.Agent(name, project, agents.COMPETES, shared=shared) for name in ("ann", "bob"))
    ann.act(server)
    [session_id] = shared

    def report(agent, step, *, times=1):
        file = f"{'ann' if agent is ann else 'bob'}.md"
        outputs = {f"{step}.md": file}
        arguments = {"outputs": outputs, "session_id": session_id, "step_id": step}
        call = agents.Call("finished_step", arguments, (session_id, step, file))
        for _ in range(times):
            agent.make(server, call)

    report(ann, "a")
    yield ann, bob, report, ledger.Ledger(project, [ann, bob])
    server.close()


def test_a_member_that_is_reported_as_it_was_at_first_is_no_repeat_that_counted_twice(scene):
    ann, bob, report, ledger = scene
    report(ann, "c")
    report(bob, "c")
    report(ann, "c", times=2)
    ledger.check()
    assert not ledger.found


def test_a_report_that_counts_more_often_than_it_was_made_is_noticed(scene):
    ann, bob, report, ledger = scene
    report(ann, "c")
    report(bob, "c")
    report(ann, "c")
    ann.acknowledged.subtract({change: 1 for change in ann.acknowledged if change[1] == "c"})
    ledger.check()
    assert [*ledger.found] == ["twice"]
