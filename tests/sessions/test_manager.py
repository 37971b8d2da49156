"""Two servers on one project: no update is lost, and the loser of a race answers from what it finds."""

import anyio
import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
async def servers(demo):
    async with demo.agent() as first, demo.agent() as second:
        yield first, second


async def at_once(*calls):
    """Make calls at the same time; give replies, or the texts of refusals, in the order of the calls."""
    answers = [None] * len(calls)

    async def make(number, agent, tool, arguments):
        result = await agent.client.call_tool(tool, arguments, raise_on_error=False)
        answers[number] = result.content[0].text if result.is_error else result.structured_content

    async with anyio.create_task_group() as tasks:
        for number, call in enumerate(calls):
            tasks.start_soon(make, number, *call)
    return answers


async def test_a_session_is_begun_on_one_server_and_completed_on_the_other(servers):
    first, second = servers
    begin = await first.start()
    await second.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
    assert (await first.finish({"b.md": "b.md"}))["status"] == "workflow_complete"


async def test_a_step_completed_elsewhere_is_seen_by_the_next_call(servers):
    first, second = servers
    begin = await first.start(workflow="long")
    await second.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
    reply = await first.call("start_workflow", goal="g", job_name="demo", workflow_name="single")
    assert reply["stack"] == [{"workflow": "demo/long", "step": "b"}, {"workflow": "demo/single", "step": "a"}]


@pytest.mark.parametrize("attempt", range(5))
async def test_one_of_two_different_reports_wins_and_the_other_is_told_the_current_step(demo, servers, stored, attempt):
    demo.write("x.md")
    demo.write("y.md")
    begin = await servers[0].start()
    named = {"session_id": begin["session_id"], "step_id": "a"}
    answers = await at_once(
        (servers[0], "finished_step", {"outputs": {"a.md": "x.md"}, **named}),
        (servers[1], "finished_step", {"outputs": {"a.md": "y.md"}, **named}),
    )
    (won,) = [path for answer, path in zip(answers, ("x.md", "y.md"), strict=True) if isinstance(answer, dict)]
    (lost,) = [answer for answer in answers if isinstance(answer, str)]
    assert "Step 'a' was already completed with other outputs; the current step is 'b'" in lost
    assert stored(begin["session_id"])["step_progress"]["a"]["outputs"] == {"a.md": won}


@pytest.mark.parametrize("attempt", range(5))
async def test_two_equal_reports_count_once_and_get_the_same_reply(servers, stored, attempt):
    begin = await servers[0].start()
    arguments = {"outputs": {"a.md": "a.md"}, "session_id": begin["session_id"], "step_id": "a"}
    first, second = await at_once(*((agent, "finished_step", arguments) for agent in servers))
    assert first["begin_step"] == second["begin_step"]
    assert (first["status"], second["status"]) == ("next_step", "next_step")
    assert stored(begin["session_id"])["revision"] == 2


@pytest.mark.parametrize("attempt", range(5))
async def test_without_step_id_the_loser_counts_for_the_step_that_was_meant(servers, stored, attempt):
    begin = await servers[0].start(workflow="empty")
    arguments = {"outputs": {}, "session_id": begin["session_id"]}
    answers = await at_once(*((agent, "finished_step", arguments) for agent in servers))
    assert stored(begin["session_id"])["revision"] == 2
    assert any(isinstance(answer, dict) for answer in answers)


@pytest.mark.parametrize("attempt", range(5))
async def test_an_abort_and_a_report_at_once_leave_a_consistent_session(servers, stored, events, attempt):
    begin = await servers[0].start(workflow="single")
    named = {"session_id": begin["session_id"]}
    finish, abort = await at_once(
        (servers[0], "finished_step", {"outputs": {"a.md": "a.md"}, "step_id": "a", **named}),
        (servers[1], "abort_workflow", {"explanation": "enough", **named}),
    )
    status = stored(begin["session_id"])["status"]
    if status == "completed":
        assert finish["status"] == "workflow_complete"
        assert "is over: completed" in abort
    else:
        assert "is over: aborted (enough)" in finish
        assert abort["aborted_step"] == "a"
    assert events(begin["session_id"])[-1][0] == status


async def test_two_aborts_at_once_are_one(servers, events):
    begin = await servers[0].start()
    named = {"session_id": begin["session_id"]}
    first, second = await at_once(
        (servers[0], "abort_workflow", {"explanation": "one", **named}),
        (servers[1], "abort_workflow", {"explanation": "other", **named}),
    )
    assert first["explanation"] == second["explanation"]
    assert events(begin["session_id"]).count(("aborted", "a")) == 1


async def test_processes_share_a_session_as_servers_in_one_process_do(demo, stored):
    async with demo.stdio_agent() as first, demo.stdio_agent() as second:
        begin = await first.start(workflow="long")
        for step in "abc":
            arguments = {"outputs": {f"{step}.md": f"{step}.md"}, "session_id": begin["session_id"], "step_id": step}
            replies = await at_once(*((agent, "finished_step", arguments) for agent in (first, second)))
            assert replies[0]["begin_step"] == replies[1]["begin_step"]
        assert (await second.finish({"d.md": "d.md"}))["status"] == "workflow_complete"
        assert "No active workflow session" in await first.refused("finished_step", outputs={})
    assert stored(begin["session_id"])["revision"] == 5
