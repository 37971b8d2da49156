"""Agents that have lost their memory, their reply or their way: each is told the next call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from deepwork import hookimpl
from deepwork.api import MemoryStore, Session, SessionSummary, StateStoreSpec
from deepwork.errors import CorruptSession, StorageError
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.testing import review, step
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


@pytest.fixture
def demo(project):
    project.write_job(
        steps=[step("a"), step("b"), step("r", reviews=[review()])],
        workflows={"main": ["a", "b"], "single": ["a"], "reviewed": ["r", "a"]},
    )
    for name in "abr":
        project.write(f"{name}.md")
    return project


async def test_get_workflows_lists_what_the_caller_may_go_on_with_and_the_call_that_resumes_it(demo):
    async with demo.agent() as agent:
        assert "active_sessions" not in await agent.call("get_workflows")
        first = await agent.start(workflow="single")
        await agent.finish(DONE)
        begin = await agent.start()
    async with demo.agent() as agent:
        [listed] = (await agent.call("get_workflows"))["active_sessions"]
        assert first["session_id"] not in str(listed)
        assert (listed["session_id"], listed["workflow"], listed["step"]) == (begin["session_id"], "demo/main", "a")
        assert listed["goal"] == "a goal"
        assert listed["resume"] == f'finished_step(session_id="{begin["session_id"]}", step_id="?", outputs={{}})'


async def test_at_most_ten_active_sessions_are_listed_the_newest_first(demo):
    async with demo.agent() as agent:
        ids = [(await agent.start())["session_id"] for _ in range(12)]
        listed = [item["session_id"] for item in (await agent.call("get_workflows"))["active_sessions"]]
    assert listed == ids[:1:-1]


class BadListing(MemoryStore):
    """A store whose listing fails, or takes its time."""

    def __init__(self, find: Any) -> None:
        super().__init__()
        self._find = find

    async def find(self, **_: Any) -> Any:
        return await self._find()


def with_store(store: MemoryStore) -> PluginManager:
    class Stores:
        @hookimpl
        def deepwork_state_stores(self):
            yield StateStoreSpec(name="bad", open=lambda _workspace: store)

    return PluginManager(candidates=[*installed(), Candidate("bad", "bad-dist", "1.0", Stores)])


def with_listing(find: Any) -> PluginManager:
    return with_store(BadListing(find))


async def test_a_store_that_cannot_list_leaves_the_list_out_with_a_notice(demo):
    async def fail():
        raise OSError("the disk is gone")

    server = demo.server(state_store="bad", plugins=with_listing(fail))
    async with demo.agent(server) as agent:
        reply = await agent.call("get_workflows")
    assert [job["name"] for job in reply["jobs"]][:1] == ["demo"]
    assert "active_sessions" not in reply
    assert "The active sessions could not be listed." in reply["notices"][0]


@pytest.mark.parametrize("error", [StorageError("The database is away"), OSError("a bug")])
async def test_a_listing_that_fails_as_expected_is_one_line_of_the_log_and_its_traceback_is_for_debugging(
    demo, caplog, error
):
    async def fail():
        raise error

    caplog.set_level(logging.DEBUG, "deepwork")
    async with demo.agent(demo.server(state_store="bad", plugins=with_listing(fail))) as agent:
        await agent.call("get_workflows")
    records = [record for record in caplog.records if "could not be listed" in record.message]
    loud = [record for record in records if record.levelno > logging.DEBUG]
    if isinstance(error, StorageError):
        assert [record.message for record in loud] == ["the active sessions could not be listed: The database is away"]
    assert [bool(record.exc_info) for record in loud] == [not isinstance(error, StorageError)]
    assert any(record.exc_info for record in records)


async def test_a_store_that_is_slow_to_list_holds_up_no_listing_of_jobs(demo, monkeypatch):
    monkeypatch.setattr("deepwork.engine.active.SECONDS", 0.1)
    server = demo.server(state_store="bad", plugins=with_listing(anyio.sleep_forever))
    async with demo.agent(server) as agent:
        with anyio.fail_after(PATIENCE):
            reply = await agent.call("get_workflows")
    assert "The active sessions could not be listed." in reply["notices"][0]


async def test_a_second_start_of_an_active_workflow_names_both_ways_on(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        reply = await agent.call("start_workflow", goal="again", job_name="demo", workflow_name="main")
    [notice] = [text for text in reply["notices"] if "is active already" in text]
    assert f'finished_step(session_id="{begin["session_id"]}", step_id="?", outputs={{}})' in notice
    assert f"abort_workflow(session_id={reply['begin_step']['session_id']!r}, explanation=...)" in notice


class SavesInPairs(MemoryStore):
    """Saves a new session only when another one is being saved too."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived = 0
        self._both = anyio.Event()

    async def save(self, session: Any, *, expected: int | None) -> int:
        self._arrived += 1
        if self._arrived == 2:
            self._both.set()
        await self._both.wait()
        return await super().save(session, expected=expected)


async def test_two_starts_of_a_workflow_at_the_same_time_are_told_of_each_other(demo):
    replies = []
    async with demo.agent(demo.server(state_store="bad", plugins=with_store(SavesInPairs()))) as agent:

        async def start() -> None:
            replies.append(await agent.call("start_workflow", goal="both", job_name="demo", workflow_name="main"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            tasks.start_soon(start)
    for reply, other_reply in (replies, replies[::-1]):
        [notice] = [text for text in reply["notices"] if "is active already" in text]
        assert other_reply["begin_step"]["session_id"] in notice


class RemovesAfterALook(MemoryStore):
    """Loses a session between a look at its summary and the next one at all of it, as `sessions clean` may."""

    removed: str | None = None

    async def load(self, session_id: str) -> Session | None:
        return None if session_id == self.removed else await super().load(session_id)

    async def peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]:
        return [summary for summary in await self.find(limit=10) if summary.session_id in session_ids]


async def test_a_session_of_the_stack_that_is_removed_meanwhile_stops_no_start_and_hides_no_refusal(demo):
    store = RemovesAfterALook()
    async with demo.agent(demo.server(state_store="bad", plugins=with_store(store))) as agent:
        outer, inner = await agent.start(), await agent.start(workflow="single")
        store.removed = outer["session_id"]
        third = await agent.start(workflow="reviewed")
        refusal = await agent.refused("finished_step", outputs={"x": "a.md"}, session_id=inner["session_id"])
        assert refusal.startswith("Unknown outputs: x.")
    assert third["step_id"] == "r"


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
async def test_a_goal_and_an_explanation_that_say_nothing_are_refused(demo, text):
    async with demo.agent() as agent:
        refusal = await agent.refused("start_workflow", goal=text, job_name="demo", workflow_name="main")
        assert refusal == "goal is empty; nothing was changed\nGive goal in a sentence."
        await agent.start()
        assert "explanation is empty" in await agent.refused("abort_workflow", explanation=text)
        assert (await agent.finish(DONE))["status"] == "next_step"


async def test_a_question_is_an_answer_with_the_current_step_and_changes_nothing(demo, stored):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="reviewed")
        before = stored(begin["session_id"])
        reply = await agent.finish({}, step_id="?")
        assert stored(begin["session_id"]) == before
    assert (reply["status"], reply["begin_step"]) == ("needs_work", begin)
    assert "Now at step 'r' (step 1 of 2)." in reply["feedback"]


async def test_a_question_about_a_completed_session_tells_what_came_out(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="single")
        await agent.finish(DONE)
        reply = await agent.finish({}, step_id="?", session_id=begin["session_id"])
    assert (reply["status"], reply["all_outputs"]) == ("workflow_complete", DONE)
    assert "there is nothing left to report" in reply["summary"]


async def test_a_question_about_an_aborted_session_tells_why_and_what_was_made(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        await agent.finish(DONE)
        await agent.call("abort_workflow", explanation="No longer needed")
        reply = await agent.finish({}, step_id="?", session_id=begin["session_id"])
    assert reply["all_outputs"] == DONE
    assert "was aborted (No longer needed)" in reply["summary"]


async def test_an_output_of_the_workflow_below_is_told_whose_it_is(demo):
    async with demo.agent() as agent:
        parent = await agent.start()
        await agent.start(workflow="reviewed")
        text = await agent.refused("finished_step", outputs=DONE)
    owner = f"finished_step(session_id={parent['session_id']!r}, step_id='a', outputs={{...}})"
    assert f"'a.md' of step 'a' of demo/main: report with {owner}" in text


async def test_a_refusal_without_outputs_and_ids_tells_how_to_ask(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        text = await agent.refused("finished_step", outputs={})
    session_id = begin["session_id"]
    assert text == (
        f"Missing required outputs: a.md (step 'a' of demo/main, session {session_id!r})\n"
        f'If you have lost track, call finished_step(session_id="{session_id}", step_id="?", outputs={{}}).'
    )


async def test_an_abort_says_what_a_repeated_one_would_end(demo):
    async with demo.agent() as agent:
        parent = await agent.start()
        await agent.start(workflow="single")
        reply = await agent.call("abort_workflow", explanation="enough")
        [tool] = [tool for tool in await agent.client.list_tools() if tool.name == "abort_workflow"]
    warning = f"Another abort_workflow without session_id would end demo/main, session {parent['session_id']!r}."
    assert warning in reply["notices"]
    assert tool.annotations.idempotent_hint is False


async def test_a_session_begun_on_another_connection_is_taken_up_with_its_goal_once(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
    async with demo.agent() as agent:
        call = {"session_id": begin["session_id"], "step_id": "a"}
        reply = await agent.finish(DONE, **call)
        assert f"Session {begin['session_id']!r} was begun on another connection. Its goal: a goal" in reply["notices"]
        assert "notices" not in await agent.finish({"b.md": "b.md"})


async def test_a_guess_about_an_aborted_session_is_not_made(demo):
    async with demo.agent() as agent:
        await agent.start()
        await agent.finish(DONE)
        await agent.call("abort_workflow", explanation="enough")
        text = await agent.refused("finished_step", outputs=DONE)
    assert "These are the outputs" not in text


async def test_a_passed_self_review_and_an_override_are_told_apart(demo, stored):
    async with demo.agent() as agent:
        passed = await agent.start(workflow="reviewed")
        await agent.finish({"r.md": "r.md"})
        await agent.finish({"r.md": "r.md"}, quality_review_override_reason="Good: passed")
        skipped = await agent.start(workflow="reviewed")
        await agent.finish({"r.md": "r.md"}, quality_review_override_reason="no time")

    def events(begin):
        history = stored(begin["session_id"])["history"]
        return [(item["kind"], item["detail"]) for item in history if item["kind"] in ("self_review", "override")]

    assert events(passed) == [("self_review", {"reason": "Good: passed"})]
    assert events(skipped) == [("override", {"reason": "no time", "before_review": True})]
