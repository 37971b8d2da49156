"""A person pauses a session: its steps cannot be finished, and nothing starts on top of it, until it goes on."""

from __future__ import annotations

import json

import pytest

from deepwork import hookimpl
from deepwork.api import CriterionResult, Passed, ReviewRunner, ReviewRunnerSpec, project_at
from deepwork.errors import PersonNeeded, StateError
from deepwork.ports.inbox import Answer, Answerer
from deepwork.sessions import transitions
from deepwork.testing import a_session, review, step

pytestmark = pytest.mark.anyio

PERSON = Answerer(user="ada", terminal="/dev/pts/0")
WORDS = "A person has paused this session: the plan changes; finish no step, wait."


@pytest.fixture
def change(project):
    """Do what a person does to a session, in another process than the server's as far as the server can tell."""

    async def change(session_id, act, *arguments, by=PERSON):
        access = project_at(project.root)
        try:
            changes = access.interventions()
            return await getattr(changes, act)(await changes.named(session_id), *arguments, by)
        finally:
            await access.close()

    return change


@pytest.fixture
async def started(project):
    """A server and the first step of a session on it."""
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        yield agent, await agent.start()


async def test_a_step_of_a_paused_session_is_refused_until_it_goes_on(started, change, project):
    agent, begin = started
    await change(begin["session_id"], "pause", "the plan changes")
    assert WORDS in await agent.refused("finished_step", outputs={"a.md": "a.md"})
    async with project.agent() as other_server:
        named = {"session_id": begin["session_id"], "step_id": "a"}
        assert WORDS in await other_server.refused("finished_step", outputs={"a.md": "a.md"}, **named)
    await change(begin["session_id"], "unpause", "Leave b short")
    reply = await agent.finish({"a.md": "a.md"})
    assert reply["status"] == "next_step"


async def test_what_it_needs_is_told_while_it_is_paused_and_it_can_be_aborted(started, change):
    agent, begin = started
    await change(begin["session_id"], "pause", "the plan changes")
    assert "'a'" in await agent.where()
    assert (await agent.call("abort_workflow", explanation="over"))["aborted_step"] == "a"


async def test_nothing_starts_on_top_of_a_paused_session_however_deep_below_it_is(started, change, project):
    agent, begin = started
    child = await agent.start()
    await change(begin["session_id"], "pause", "the plan changes")
    arguments = {"goal": "more", "job_name": "demo", "workflow_name": "main"}
    assert WORDS in await agent.refused("start_workflow", **arguments)
    async with project.agent() as other_server:
        for parent in (begin, child):
            text = await other_server.refused("start_workflow", **arguments, parent_session_id=parent["session_id"])
            assert WORDS in text
        assert await other_server.start()  # which is on top of nothing
    assert (await agent.finish({"a.md": "a.md"}, session_id=child["session_id"]))["status"] == "next_step"


async def test_a_pause_during_a_review_keeps_the_step_open_and_the_verdict_counts_afterwards(project, change):
    """The reviewer pauses the session while it judges."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")

    sessions, requests = [], []

    class Runner(ReviewRunner):
        async def review(self, request):
            requests.append(request)
            if len(requests) == 1:
                await change(sessions[0], "pause", "the plan changes")
            return Passed(feedback="Good.", criteria=[CriterionResult(criterion="Good", passed=True)])

    class Plugin:
        @hookimpl
        def deepwork_review_runners(self):
            yield ReviewRunnerSpec(name="acme", create=Runner, max_inline_files=5)

    server = project.server(extra_plugins={"acme": Plugin()}, external_runner="acme")
    async with project.agent(server) as agent:
        begin = await agent.start()
        sessions.append(begin["session_id"])
        assert WORDS in await agent.refused("finished_step", outputs={"a.md": "a.md"})
        await change(begin["session_id"], "unpause", None)
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"
    assert len(requests) == 1


def test_a_pause_that_comes_between_the_check_of_a_report_and_its_save_holds_the_step():
    paused = transitions.pause(a_session(), "the plan changes", {}, now="2026-11-19T10:00:00+00:00")
    completion = transitions.Completion(step_id=paused.current_step_id, outputs={})
    with pytest.raises(StateError, match="the plan changes"):
        transitions.complete(paused, completion, now="2026-11-19T10:00:01+00:00")


async def test_what_is_over_or_paused_cannot_be_paused_and_what_is_not_paused_cannot_go_on(started, change):
    agent, begin = started
    with pytest.raises(StateError, match="is not paused"):
        await change(begin["session_id"], "unpause", None)
    await change(begin["session_id"], "pause", "first")
    with pytest.raises(StateError, match="is paused already"):
        await change(begin["session_id"], "pause", "second")
    await agent.call("abort_workflow", explanation="over")
    with pytest.raises(StateError, match="aborted"):
        await change(begin["session_id"], "pause", "late")


@pytest.mark.parametrize(("act", "text"), [("pause", "x"), ("unpause", None), ("say", "x")])
async def test_only_a_person_pauses_goes_on_and_speaks(started, change, act, text):
    _, begin = started
    with pytest.raises(PersonNeeded):
        await change(begin["session_id"], act, text, by=Answerer(user="ada"))


async def test_going_back_to_a_step_does_not_end_a_pause(started, change, run):
    agent, begin = started
    await change(begin["session_id"], "pause", "the plan changes")
    ended = run("sessions", "reopen", begin["session_id"], "a", "--reason", "again")
    assert ended.returncode == 0
    assert WORDS in await agent.refused("finished_step", outputs={"a.md": "a.md"})


async def test_the_commands_need_a_terminal_and_the_session_says_that_it_waits(started, run, change, project):
    _, begin = started
    session_id = begin["session_id"]
    for command in (["sessions", "pause", session_id, "--reason", "x"], ["say", session_id, "x"]):
        ended = run(*command)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert "Only a person may" in ended.stderr
    assert "--reason is empty" in run("sessions", "pause", session_id, "--reason", "  ").stderr
    await change(session_id, "pause", "the plan changes")
    assert "waits for a person" in run("status").stdout
    assert "Only a person may" in run("sessions", "unpause", session_id).stderr
    [file] = project.state.glob("session_*.json")
    assert [entry["kind"] for entry in json.loads(file.read_text())["history"]][-1] == "paused"


async def test_a_paused_session_stands_in_the_inbox_where_a_person_lets_it_go_on(started, change, project):
    agent, begin = started
    await change(begin["session_id"], "pause", "the plan changes")
    access = project_at(project.root)
    try:
        [item] = (await access.inbox().items(PERSON)).items
        assert (item.kind, [action.name for action in item.actions]) == ("paused", ["unpause", "abort"])
        assert "the plan changes" in item.what
        await access.inbox().answer(item.id, Answer("unpause", "Leave b short"), PERSON)
        assert (await access.inbox().items(PERSON)).items == ()
    finally:
        await access.close()
    assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"
