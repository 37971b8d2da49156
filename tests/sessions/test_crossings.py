"""How often a call goes to a thread, and what stops no other call."""

from __future__ import annotations

import threading

import anyio
import pytest

from deepwork import hookimpl
from deepwork.api import JobSource
from deepwork.programs.work_queue import WorkQueue

pytestmark = pytest.mark.anyio


@pytest.fixture
def crossings(monkeypatch):
    """The work that is handed to threads, by the name of the thread."""
    handovers = []
    submit, run_sync = WorkQueue.submit, anyio.to_thread.run_sync

    def count(queue, work):
        handovers.append(queue._name)
        return submit(queue, work)

    async def count_too(work, *arguments, **options):
        handovers.append("other")
        return await run_sync(work, *arguments, **options)

    monkeypatch.setattr(WorkQueue, "submit", count)
    monkeypatch.setattr(anyio.to_thread, "run_sync", count_too)
    return handovers


@pytest.fixture
async def agent(project):
    project.write_job()
    project.write("a.md")
    project.write("b.md")
    async with project.agent() as agent:
        yield agent


@pytest.mark.parametrize("named", [True, False], ids=["named", "the top of the stack"])
async def test_a_reported_step_is_read_and_checked_in_one_thread_and_saved_in_another(agent, crossings, named):
    outer, inner = await agent.start(), await agent.start()
    target = {"session_id": inner["session_id"]} if named else {}
    crossings.clear()
    reply = await agent.finish({"a.md": "a.md"}, **target)
    assert reply["status"] == "next_step"
    assert [entry["step"] for entry in reply["stack"]] == [outer["step_id"], "b"]
    assert crossings == ["deepwork-calls", "deepwork-sessions"]


async def test_a_repeated_report_and_a_refused_one_are_only_read(agent, crossings):
    first_step = await agent.start()
    await agent.finish({"a.md": "a.md"}, session_id=first_step["session_id"], step_id="a")
    crossings.clear()
    await agent.finish({"a.md": "a.md"}, session_id=first_step["session_id"], step_id="a")
    assert crossings == ["deepwork-calls"]
    crossings.clear()
    await agent.refused("finished_step", outputs={}, session_id=first_step["session_id"], step_id="b")
    assert crossings == ["deepwork-calls"]


class StuckSource(JobSource):
    """Jobs on a network disk that has gone away."""

    name = "stuck"
    rank = 99

    def __init__(self):
        self.released = threading.Event()
        self.asked = threading.Semaphore(0)

    def load(self):
        self.asked.release()
        self.released.wait()
        return []


async def test_job_sources_that_hang_stop_neither_the_store_nor_reports(project):
    """More calls hang than there are threads for them; workflows that need nothing of that source go on."""
    project.write_job()
    project.write("a.md")
    source = StuckSource()

    class Plugin:
        @hookimpl
        def deepwork_job_sources(self):
            yield source

    async with project.agent(extra_plugins={"stuck": Plugin()}) as agent:
        first_step = await agent.start()
        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(agent.call, "get_workflows")
            for _ in range(int(anyio.to_thread.current_default_thread_limiter().total_tokens)):
                await anyio.to_thread.run_sync(source.asked.acquire, limiter=anyio.CapacityLimiter(1))
            with anyio.fail_after(240):
                reply = await agent.finish({"a.md": "a.md"}, session_id=first_step["session_id"])
                assert reply["status"] == "next_step"
                assert "step 'b'" in await agent.where(session_id=first_step["session_id"])
            source.released.set()
