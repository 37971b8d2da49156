"""A review that is under way: shared by equal calls, ended by an override, a lost caller, or the server's end."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest

from deepwork import hookimpl
from deepwork.api import NeedsWork, Passed
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import PluginManager

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


@pytest.fixture
def held(judge):
    runner = judge(lambda _: Passed())
    runner.hold = True
    return runner


async def until(condition):
    with anyio.fail_after(240):
        while not condition():  # noqa: ASYNC110 - what a test waits for has no event
            await anyio.sleep(0.005)


async def finish_when_told(agent, arguments, replies, *, task_status):
    """Report a step, and say that the call waits for its review once it is told of the review's progress."""
    waits = anyio.Event()

    async def hear(*_progress):
        waits.set()

    async def call():
        result = await agent.client.call_tool("finished_step", arguments, progress_handler=hear)
        replies.append(result.structured_content)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await waits.wait()
        task_status.started()


async def test_equal_calls_share_one_review_and_get_one_answer(reviewed, held, served, stored):
    replies = []
    async with reviewed.agent(served(held)) as agent, anyio.create_task_group() as tasks:
        begin = await agent.start()
        arguments = {"outputs": DONE, "session_id": begin["session_id"], "step_id": "a"}
        for _ in range(3):
            await tasks.start(partial(finish_when_told, agent, arguments, replies))
        held.release.set()
        await until(lambda: len(replies) == 3)
    assert [reply["begin_step"]["step_id"] for reply in replies] == ["b"] * 3
    assert len(held.requests) == 1
    assert stored()["step_progress"]["a"]["quality_attempts"] == 1


async def test_equal_calls_share_a_failure_and_it_counts_once(reviewed, held, served, stored):
    held.answer = lambda _: NeedsWork("more")
    replies = []
    async with reviewed.agent(served(held)) as agent, anyio.create_task_group() as tasks:
        await agent.start()
        for _ in range(2):
            await tasks.start(partial(finish_when_told, agent, {"outputs": DONE}, replies))
        held.release.set()
        await until(lambda: len(replies) == 2)
    assert [reply["feedback"] for reply in replies] == ["more"] * 2
    assert stored()["step_progress"]["a"]["quality_attempts"] == 1


async def test_other_contents_are_reviewed_for_themselves(reviewed, held, served):
    async with reviewed.agent(served(held)) as agent, anyio.create_task_group() as tasks:
        await agent.start()

        async def finish():
            await agent.finish(DONE)

        tasks.start_soon(finish)
        await held.asked.wait()
        reviewed.write("a.md", "Other work\n")
        tasks.start_soon(finish)
        await until(lambda: len(held.requests) == 2)
        held.release.set()


async def test_a_review_goes_on_while_one_caller_is_left(reviewed, held, served):
    server = served(held)
    replies = []
    async with reviewed.agent(server) as stays, anyio.create_task_group() as tasks:
        begin = await stays.start()

        arguments = {"outputs": DONE, "session_id": begin["session_id"]}

        async def leave(*, task_status):
            async with reviewed.agent(server) as agent:
                await finish_when_told(agent, arguments, [], task_status=task_status)

        async with anyio.create_task_group() as leaving:
            await leaving.start(leave)
            await tasks.start(partial(finish_when_told, stays, arguments, replies))
            leaving.cancel_scope.cancel()
        assert held.cancelled == 0  # the client that has left is closed, and its call ended
        held.release.set()
        await until(lambda: replies)
    assert replies[0]["status"] == "next_step"
    assert len(held.requests) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_review_is_ended_when_its_last_caller_goes(reviewed, held, served, stored, mode):
    async with reviewed.agent(served(held), mode=mode) as agent:
        await agent.start()
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(agent.finish, DONE)
            await held.asked.wait()
            leaving.cancel_scope.cancel()
        await until(lambda: held.cancelled == 1)
        await until(lambda: stored()["step_progress"]["a"]["quality_attempts"] == 0)
    assert [entry["kind"] for entry in stored()["history"]][-2:] == ["attempt", "attempt_given_back"]


async def test_a_call_to_a_server_that_nobody_has_entered_is_ended_with_its_caller(reviewed, held, served):
    server = served(held)
    await server.call_tool("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"})
    async with anyio.create_task_group() as leaving:
        leaving.start_soon(server.call_tool, "finished_step", {"outputs": DONE})
        await held.asked.wait()
        leaving.cancel_scope.cancel()
    assert held.cancelled == 1
    assert held.running == 0


async def test_an_override_does_not_wait_and_ends_the_review(reviewed, held, served, history):
    replies = []
    async with reviewed.agent(served(held)) as agent, anyio.create_task_group() as tasks:
        begin = await agent.start()
        named = {"session_id": begin["session_id"], "step_id": "a"}

        async def finish():
            replies.append(await agent.finish(DONE, **named))

        tasks.start_soon(finish)
        await held.asked.wait()
        with anyio.fail_after(240):
            reply = await agent.finish(DONE, quality_review_override_reason="The user has read it", **named)
        assert reply["status"] == "next_step"
        assert held.cancelled == 1
        await until(lambda: replies)
    assert replies[0]["begin_step"]["step_id"] == "b"  # the recorded reply, and no new review
    assert len(held.requests) == 1
    assert history("override") == [{"reason": "The user has read it"}]
    assert len(history("attempt_given_back")) == 1


async def test_an_override_that_is_refused_leaves_the_review_alone(reviewed, held, served):
    async with reviewed.agent(served(held)) as agent, anyio.create_task_group() as tasks:
        await agent.start()
        tasks.start_soon(agent.finish, DONE)
        await held.asked.wait()
        await agent.refused("finished_step", outputs={"a.md": "no.md"}, quality_review_override_reason="because")
        assert held.cancelled == 0
        held.release.set()


async def test_an_abort_wins_and_the_verdict_is_only_recorded(reviewed, held, served, stored, history):
    errors = []
    async with reviewed.agent(served(held)) as agent, anyio.create_task_group() as tasks:
        begin = await agent.start()

        async def finish():
            errors.append(await agent.refused("finished_step", outputs=DONE, session_id=begin["session_id"]))

        tasks.start_soon(finish)
        await held.asked.wait()
        await agent.call("abort_workflow", explanation="enough")
        held.release.set()
        await until(lambda: errors)
    assert "is over: aborted (enough)" in errors[0]
    session = stored()
    assert (session["status"], session["step_progress"]["a"]["completed_at"]) == ("aborted", None)
    assert [verdict["passed"] for verdict in history("verdict")] == [True]


async def test_no_lock_is_held_while_a_review_runs(reviewed, held, served):
    async with reviewed.agent(served(held)) as agent, anyio.create_task_group() as tasks:
        begin = await agent.start()
        tasks.start_soon(lambda: agent.finish(DONE, session_id=begin["session_id"]))
        await held.asked.wait()
        with anyio.fail_after(240):
            await agent.call("get_workflows")
            another_session = await agent.start()
            await agent.call("abort_workflow", explanation="only a test", session_id=another_session["session_id"])
        held.release.set()


async def test_the_slower_of_two_servers_answers_with_the_recorded_reply(reviewed, held, judge, served, history):
    replies = []
    async with reviewed.agent(served(held)) as slow, reviewed.agent(served(judge(lambda _: Passed()))) as fast:
        begin = await slow.start()
        named = {"session_id": begin["session_id"], "step_id": "a"}
        async with anyio.create_task_group() as tasks:

            async def finish():
                replies.append(await slow.finish(DONE, **named))

            tasks.start_soon(finish)
            await held.asked.wait()
            assert (await fast.finish(DONE, **named))["status"] == "next_step"
            held.release.set()
    assert replies[0]["begin_step"]["step_id"] == "b"
    assert len(history("verdict")) == 2
    assert len(history("step_completed")) == 1


async def test_a_server_that_closes_ends_its_reviews_and_begins_no_other(reviewed, held, plugins_with):
    class Probe:
        @hookimpl
        def deepwork_tool_sets(self, engine):
            self.engine = engine

    plugins, probe = plugins_with(judge=held), Probe()
    both = PluginManager(
        candidates=[*(status.plugin for status in plugins.statuses), Candidate("p", "p", "1", lambda: probe)]
    )
    errors = []
    server = reviewed.server(external_runner="judge", plugins=both)
    async with reviewed.agent(server) as agent, anyio.create_task_group() as tasks:
        await agent.start()

        async def finish():
            errors.append(await agent.refused("finished_step", outputs=DONE))

        tasks.start_soon(finish)
        await held.asked.wait()
        await probe.engine.close()
        assert held.running == 0
        await until(lambda: errors)
    assert errors[0].startswith("The review was ended with the server")
    assert len(held.requests) == 1


async def test_a_client_that_leaves_in_the_middle_ends_its_review(reviewed, held, served):
    async with anyio.create_task_group() as tasks, reviewed.agent(served(held)) as agent:
        await agent.start()
        tasks.start_soon(agent.finish, DONE)
        await held.asked.wait()
        tasks.cancel_scope.cancel()
    await until(lambda: (held.running, held.cancelled) == (0, 1))
    await until(lambda: not [*Path(tempfile.gettempdir()).glob("deepwork-private-*")])
