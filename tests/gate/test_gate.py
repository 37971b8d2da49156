"""News for clients whose call takes long."""

from __future__ import annotations

import threading
import time

import anyio
import pytest

from deepwork import hookimpl
from deepwork.api import Passed, ToolCall, ToolSet, ToolSpec
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_hears_which_reviews_run_and_which_are_done(project, many, judge, served, mode):
    files = many(3)
    runner = judge(lambda _: Passed())
    news = []

    async def hear(number, total, text):
        news.append((number, total, text))

    async with project.agent(served(runner), mode=mode) as agent:
        await agent.start()
        await agent.client.call_tool("finished_step", {"outputs": {"parts": files}}, progress_handler=hear)
    amounts = [number for number, _, _ in news]
    assert amounts == sorted(set(amounts))
    assert {total for _, total, _ in news} == {3.0}
    assert "0 of 3 reviews done" in news[0][2]
    assert any("reviewing part" in text for _, _, text in news)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_caller_of_a_shared_review_hears_of_it(reviewed, judge, served, mode):
    runner = judge(lambda _: Passed())
    runner.hold = True
    heard = []
    async with reviewed.agent(served(runner), mode=mode) as agent, anyio.create_task_group() as tasks:
        await agent.start()

        async def finish(number):
            async def hear(*_):
                heard.append(number)
                if {1, 2} <= set(heard):
                    runner.release.set()

            await agent.client.call_tool("finished_step", {"outputs": DONE}, progress_handler=hear)

        tasks.start_soon(finish, 1)
        await runner.asked.wait()
        tasks.start_soon(finish, 2)
    assert set(heard) == {1, 2}
    assert len(runner.requests) == 1


async def test_a_client_that_does_not_want_news_gets_none_and_its_answer(reviewed, judge, served):
    async with reviewed.agent(served(judge(lambda _: Passed()))) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"


async def test_a_call_that_nobody_has_made_tells_nobody():
    await ToolCall().progress(1, 2, "half")
    assert not ToolCall().cancelled


@pytest.fixture
def slow(project):
    """A server with two tools that work until their caller has gone, one of them in a thread."""
    events = {"waits": anyio.Event(), "async": anyio.Event(), "thread": threading.Event(), "begun": threading.Event()}

    async def wait(call: ToolCall) -> str:
        """Wait for ever."""
        await call.progress(1, 2, "waiting")
        events["waits"].set()
        try:
            await anyio.sleep_forever()
        finally:
            assert call.cancelled
            events["async"].set()

    def work(call: ToolCall) -> str:
        """Work until the caller has gone."""
        deadline = time.monotonic() + PATIENCE
        events["begun"].set()
        while not call.cancelled and time.monotonic() < deadline:
            time.sleep(0.01)
        if call.cancelled:
            events["thread"].set()
        return "done"

    class Tools:
        @hookimpl
        def deepwork_tool_sets(self):
            yield ToolSet(
                "slow",
                [ToolSpec("wait", wait, title="Wait", output="text"), ToolSpec("work", work, title="W", output="text")],
            )

    plugins = PluginManager(candidates=[*installed(), Candidate("slow", "slow-dist", "1", Tools)])
    return project.server(plugins=plugins), events


async def test_a_tool_learns_that_its_caller_has_gone(project, slow):
    server, events = slow
    async with project.agent(server) as agent:
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(agent.client.call_tool, "wait")
            await events["waits"].wait()
            leaving.cancel_scope.cancel()
        with anyio.fail_after(240):
            await events["async"].wait()


async def test_a_tool_in_a_thread_can_look_whether_its_caller_has_gone(project, slow):
    server, events = slow
    async with project.agent(server) as agent:
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(agent.client.call_tool, "work")
            await anyio.to_thread.run_sync(events["begun"].wait)
            leaving.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(events["thread"].wait, PATIENCE)
