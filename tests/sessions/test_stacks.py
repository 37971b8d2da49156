"""A stack belongs to a connection, starts empty, and is filled by adoption."""

import re

import pytest

pytestmark = pytest.mark.anyio


def entries(*workflows):
    return [{"workflow": f"demo/{name}", "step": step} for name, step in workflows]


async def test_a_new_connection_has_an_empty_stack(demo):
    async with demo.agent() as agent:
        await agent.start()
    async with demo.agent() as agent:
        assert "No active workflow session" in await agent.refused("finished_step", outputs={"a.md": "a.md"})


async def test_two_clients_of_one_server_object_share_a_stack(demo):
    server = demo.server()
    async with demo.agent(server) as first, demo.agent(server) as second:
        await first.start()
        assert (await second.finish({"a.md": "a.md"}))["begin_step"]["step_id"] == "b"


async def test_two_connections_never_push_onto_each_others_stack(demo):
    async with demo.agent() as first, demo.agent() as second:
        await first.start()
        reply = await second.call("start_workflow", goal="g", job_name="demo", workflow_name="long")
        assert reply["stack"] == entries(("long", "a"))


async def test_the_no_session_error_names_each_active_session_with_step_goal_and_age(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
    async with demo.agent() as agent:
        text = await agent.refused("finished_step", outputs={})
    assert re.search(rf"- {begin['session_id']}  demo/main, step 'a', \d+ s ago: a goal\n", text)


async def test_the_no_session_error_names_the_ten_newest_and_the_number_of_the_rest(demo):
    async with demo.agent() as agent:
        ids = [(await agent.start())["session_id"] for _ in range(13)]
    async with demo.agent() as agent:
        text = await agent.refused("abort_workflow", explanation="enough")
    assert re.findall(r"^- (\w{32}) ", text, re.MULTILINE) == ids[:2:-1]
    assert "and 3 more" in text


async def test_the_no_session_error_leaves_out_sessions_that_are_over(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
        await agent.call("abort_workflow", explanation="enough")
    async with demo.agent() as agent:
        text = await agent.refused("finished_step", outputs={}, step_id="?")
    assert begin["session_id"] not in text
    assert "No session of this project is active" in text


async def test_the_no_session_error_prints_the_call_that_resumes_the_newest_session(demo):
    async with demo.agent() as agent:
        await agent.start()
        newest = (await agent.start())["session_id"]
    async with demo.agent() as agent:
        text = await agent.refused("finished_step", outputs={})
        assert f'finished_step(session_id="{newest}", step_id="?", outputs={{}})' in text
        resumed = await agent.where(session_id=newest)
        assert f"# Resume demo/main, session {newest}" in resumed
        assert (await agent.finish({"a.md": "a.md"}))["begin_step"]["session_id"] == newest


async def test_the_error_for_an_unknown_session_lists_those_that_can_be_resumed(demo):
    async with demo.agent() as agent:
        session_id = (await agent.start())["session_id"]
        text = await agent.refused("finished_step", outputs={}, session_id="0" * 32)
    assert f"Session '{'0' * 32}' not found" in text
    assert session_id in text


async def test_finished_step_with_the_id_of_an_active_session_adopts_it(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
    async with demo.agent() as agent:
        reply = await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
        assert reply["stack"] == entries(("main", "b"))
        assert (await agent.finish({"b.md": "b.md"}))["status"] == "workflow_complete"


async def test_abort_workflow_with_the_id_of_an_active_session_adopts_its_parents(demo):
    async with demo.agent() as agent:
        await agent.start()
        child = await agent.start(workflow="single")
    async with demo.agent() as agent:
        reply = await agent.call("abort_workflow", explanation="enough", session_id=child["session_id"])
    assert reply["stack"] == entries(("main", "a"))
    assert reply["resumed_workflow"] == "demo/main"


async def test_adopted_parents_stand_below_the_session_in_the_order_in_which_they_nested(demo):
    async with demo.agent() as agent:
        for workflow in ("main", "long"):
            await agent.start(workflow=workflow)
        child = await agent.start(workflow="grouped")
    async with demo.agent() as agent:
        reply = await agent.finish({"a.md": "a.md"}, session_id=child["session_id"], step_id="a")
    assert reply["stack"] == entries(("main", "a"), ("long", "a"), ("grouped", "b"))


async def test_adoption_leaves_out_parents_that_have_ended(demo):
    async with demo.agent() as agent:
        await agent.start()
        middle = await agent.start(workflow="long")
        child = await agent.start(workflow="grouped")
        await agent.call("abort_workflow", explanation="enough", session_id=middle["session_id"])
    async with demo.agent() as agent:
        reply = await agent.finish({"a.md": "a.md"}, session_id=child["session_id"], step_id="a")
    assert reply["stack"] == entries(("main", "a"), ("grouped", "b"))
    assert reply["notices"] == [f"Session {child['session_id']!r} was begun on another connection. Its goal: a goal"]


async def test_what_is_on_the_stack_keeps_its_place_when_another_session_is_adopted(demo):
    async with demo.agent() as agent:
        parent = await agent.start()
        child = await agent.start(workflow="grouped")
    async with demo.agent() as agent:
        await agent.where(session_id=parent["session_id"])
        await agent.call("start_workflow", goal="g", job_name="demo", workflow_name="long")
        reply = await agent.finish({"a.md": "a.md"}, session_id=child["session_id"], step_id="a")
    assert reply["stack"] == entries(("main", "a"), ("long", "a"), ("grouped", "b"))


async def test_a_session_that_ended_elsewhere_drops_out_and_the_agent_is_told(demo):
    async with demo.agent() as first, demo.agent() as second:
        await first.start()
        child = await first.start(workflow="long")
        await second.call("abort_workflow", explanation="not needed", session_id=child["session_id"])
        reply = await first.finish({"a.md": "a.md"})
        assert reply["stack"] == entries(("main", "b"))
        assert any("demo/long" in notice and "aborted (not needed)" in notice for notice in reply.get("notices", []))


async def test_a_refusal_tells_that_the_session_has_ended_elsewhere(demo):
    async with demo.agent() as first, demo.agent() as second:
        begin = await first.start()
        await second.call("abort_workflow", explanation="not needed", session_id=begin["session_id"])
        text = await first.refused("finished_step", outputs={"a.md": "a.md"})
    assert text.startswith("No active workflow session. demo/main, session")
    assert "aborted (not needed)" in text


async def test_a_new_session_records_its_parents_parents_and_then_its_parent(demo, stored):
    async with demo.agent() as agent:
        ids = [(await agent.start(workflow=name))["session_id"] for name in ("main", "long", "grouped")]
    assert [stored(session_id)["parents"] for session_id in ids] == [[], ids[:1], ids[:2]]


async def test_a_workflow_nests_under_the_parent_that_is_named(demo, stored):
    async with demo.agent() as agent:
        parent = await agent.start()
        await agent.start(workflow="long")
        nested = await agent.call(
            "start_workflow",
            goal="g",
            job_name="demo",
            workflow_name="single",
            parent_session_id=parent["session_id"],
        )
    assert stored(nested["begin_step"]["session_id"])["parents"] == [parent["session_id"]]
    assert nested["stack"] == entries(("main", "a"), ("long", "a"), ("single", "a"))


async def test_a_parent_of_another_connection_is_adopted_with_its_own_parents(demo):
    async with demo.agent() as agent:
        await agent.start()
        parent = await agent.start(workflow="long")
    async with demo.agent() as agent:
        reply = await agent.call(
            "start_workflow",
            goal="g",
            job_name="demo",
            workflow_name="single",
            parent_session_id=parent["session_id"],
        )
    assert reply["stack"] == entries(("main", "a"), ("long", "a"), ("single", "a"))


async def test_a_parent_that_is_over_is_refused_and_nothing_is_started(demo):
    async with demo.agent() as agent:
        parent = await agent.start()
        await agent.call("abort_workflow", explanation="enough")
        call = {"goal": "g", "job_name": "demo", "workflow_name": "main", "parent_session_id": parent["session_id"]}
        assert "is over: aborted (enough)" in await agent.refused("start_workflow", **call)
    assert len(list(demo.state.glob("session_*.json"))) == 1


async def test_an_unknown_parent_is_refused_and_nothing_is_started(demo):
    async with demo.agent() as agent:
        call = {"goal": "g", "job_name": "demo", "workflow_name": "main", "parent_session_id": "nobody"}
        assert "Session 'nobody' not found" in await agent.refused("start_workflow", **call)
    assert not list(demo.state.glob("session_*.json"))


async def test_a_start_that_is_refused_adopts_no_parent(demo):
    async with demo.agent() as agent:
        parent = await agent.start()
    async with demo.agent() as agent:
        await agent.refused(
            "start_workflow",
            goal="g",
            job_name="demo",
            workflow_name="no such",
            parent_session_id=parent["session_id"],
        )
        assert "No active workflow session" in await agent.refused("finished_step", outputs={})


async def test_a_completed_session_is_not_adopted_by_a_repeated_call(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="single")
        await agent.finish({"a.md": "a.md"})
    async with demo.agent() as agent:
        reply = await agent.finish({"a.md": "a.md"}, session_id=begin["session_id"], step_id="a")
        assert reply["status"] == "workflow_complete"
        assert reply["stack"] == []


async def test_parallel_starts_on_one_connection_are_all_on_the_stack(demo):
    import anyio

    stacks = []
    async with demo.agent() as agent:

        async def start(number):
            call = {"goal": str(number), "job_name": "demo", "workflow_name": "main"}
            stacks.append((await agent.call("start_workflow", **call))["stack"])

        for _ in range(5):
            async with anyio.create_task_group() as tasks:
                for number in range(8):
                    tasks.start_soon(start, number)
        reply = await agent.finish({"a.md": "a.md"})
    assert len(reply["stack"]) == 40


async def test_a_torn_session_is_set_aside_and_named_by_the_no_session_error(demo, tear):
    async with demo.agent() as agent:
        sound, torn = [(await agent.start())["session_id"] for _ in range(2)]
    tear(torn)
    async with demo.agent() as agent:
        text = await agent.refused("finished_step", outputs={})
    (aside,) = demo.state.glob("*.corrupt")
    assert aside.name.startswith(f"session_{torn}.json.")
    assert f".deepwork/tmp/{aside.name}" in text
    assert f"- {sound}" in text
    assert f"- {torn}" not in text


async def test_a_session_that_was_cut_off_near_its_end_is_not_offered_for_resuming(demo, tear):
    async with demo.agent() as agent:
        torn = (await agent.start())["session_id"]
    tear(torn, -20)
    async with demo.agent() as agent:
        text = await agent.refused("finished_step", outputs={})
    assert f"- {torn}" not in text
    assert ".corrupt" in text


async def test_a_torn_session_on_top_refuses_a_call_that_may_have_meant_it(demo, tear):
    async with demo.agent() as agent:
        await agent.start()
        torn = await agent.start(workflow="long")
        tear(torn["session_id"])
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
        (aside,) = demo.state.glob("*.corrupt")
        assert aside.name in text
        again = await agent.finish({"a.md": "a.md"})
        assert again["stack"] == entries(("main", "b"))


async def test_a_torn_session_that_is_named_is_set_aside_and_never_taken_for_none(demo, tear):
    async with demo.agent() as agent:
        torn = (await agent.start())["session_id"]
        tear(torn)
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, session_id=torn, step_id="a")
        (aside,) = demo.state.glob("*.corrupt")
        assert "is damaged" in text
        assert aside.name in text
        assert aside.name in await agent.refused("finished_step", outputs={}, session_id=torn, step_id="a")


async def test_a_torn_session_below_the_top_is_named_in_the_notices(demo, tear):
    async with demo.agent() as agent:
        torn = await agent.start()
        child = await agent.start(workflow="long")
        tear(torn["session_id"])
        reply = await agent.finish({"a.md": "a.md"}, session_id=child["session_id"], step_id="a")
    assert reply["stack"] == entries(("long", "b"))
    (aside,) = demo.state.glob("*.corrupt")
    assert any(aside.name in notice for notice in reply.get("notices", []))
