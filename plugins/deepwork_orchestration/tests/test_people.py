"""Plans in which nothing can go on wait in the inbox until a person decides about their failed tasks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from deepwork.api import Answerer, open_context
from deepwork.errors import ArgumentError, PersonNeeded, ToolError, UnknownItem
from deepwork_orchestration.inbox import PlanInbox

pytestmark = pytest.mark.anyio

PERSON = Answerer(user="ada", terminal="/dev/pts/1")


@pytest.fixture
async def stuck(agent, make_task):
    """A plan whose task `vat` has failed, so that `release` waits for it, and all else is done."""
    workflow_id, ids = await agent.workflow(
        make_task("build"), make_task("vat"), make_task("release", "vat"), name="q3"
    )
    await agent.finish(ids["build"])
    await agent.move(ids["vat"], "planning", "in_progress", "failed")

    class Stuck:
        id, tasks, item = workflow_id, ids, f"orchestration:plan.{workflow_id}"

    return Stuck


async def test_a_plan_in_which_nothing_can_go_on_waits_and_says_what_has_failed(inbox, stuck):
    item = (await inbox.items())[stuck.item]
    assert (item.kind, item.who) == ("plan-stuck", "plan q3")
    assert item.what == "q3: nothing can go on: 'vat' has failed, 1 task waits"
    assert item.detail == f"vat ({stuck.tasks['vat']}): broke"
    assert item.reference == {"kind": "plan", "id": stuck.id}
    assert [(action.name, action.text) for action in item.actions] == [
        ("retry", None),
        ("skip", None),
        ("reassign", "agent"),
        ("edit", "description"),
    ]
    assert {tuple(action.tasks.items()) for action in item.actions} == {((stuck.tasks["vat"], "vat"),)}


async def test_a_plan_is_not_stuck_while_a_task_of_it_can_be_taken_is_worked_on_or_is_for_a_person(
    agent, inbox, make_task
):
    """One task has failed in each plan; what else there is goes on, or is listed on its own."""
    finished, first = await agent.workflow(make_task("bad"), make_task("free"))
    _, second = await agent.workflow(make_task("bad"), make_task("begun"))
    _, third = await agent.workflow(make_task("bad"), make_task("more", "bad"))
    _, fourth = await agent.workflow(make_task("bad"), make_task("sign", required_capabilities=["human"]))
    paused, fifth = await agent.workflow(make_task("bad"))
    for tasks in (first, second, third, fourth, fifth):
        await agent.move(tasks["bad"], "planning", "in_progress", "failed")
    await agent.move(second["begun"], "planning")
    claim = await agent.call("task_claim", task_id=third["bad"], agent_id=await agent.worker())
    assert claim["success"]
    await agent.call("workflow_update_status", id=paused, status="paused")
    assert {item.kind for item in (await inbox.items()).values()} == {"human-task"}
    await agent.finish(first["free"])
    assert [item.reference["id"] for item in (await inbox.items()).values() if item.kind == "plan-stuck"] == [finished]


async def test_a_failed_task_is_tried_again_and_its_history_says_who_wanted_it(agent, inbox, team, stuck):
    assert await inbox.answer(stuck.item, "retry") == "'vat' is pending again"
    assert await inbox.items() == {}
    stored = await agent.call("task_get", id=stuck.tasks["vat"], include_checkpoints=True)
    assert (stored["status"], stored["error"]) == ("pending", None)
    decision = stored["checkpoints"][-1]
    assert (decision["type"], decision["summary"]) == ("decision", "ada answered 'retry' after it had failed")
    assert (decision["detail"]["error"], decision["detail"]["answered"]["terminal"]) == ("broke", "/dev/pts/1")
    updated = [data for _, data in await team.events("task:updated") if data["id"] == stuck.tasks["vat"]]
    assert updated[-1]["status"] == "pending"


async def test_a_failed_task_is_skipped_and_what_waits_for_it_can_begin(agent, inbox, stuck):
    assert await inbox.answer(stuck.item, "skip", task=stuck.tasks["vat"]) == "'vat' is skipped"
    assert await agent.status(stuck.tasks["vat"]) == "skipped"
    assert await agent.status(stuck.tasks["release"]) == "pending"
    assert await inbox.items() == {}


async def test_a_failed_task_is_described_anew_and_pending_again(agent, inbox, stuck):
    await inbox.answer(stuck.item, "edit", "Round each line, not the sum")
    stored = await agent.call("task_get", id=stuck.tasks["vat"], include_checkpoints=True)
    assert (stored["status"], stored["description"]) == ("pending", "Round each line, not the sum")
    assert stored["checkpoints"][-1]["detail"]["previous_description"] == "Do vat"
    assert await inbox.items() == {}


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_reassigned_task_is_for_the_named_agent_alone_for_one_lease(agent, inbox, team, stuck, by_name):
    """It is offered with any capabilities to that agent, which is told of it, and to no other; then to everybody."""
    chosen = await agent.worker("ann", capabilities=["css"])
    bystander = await agent.worker("bob")
    reply = await inbox.answer(stuck.item, "reassign", "ann" if by_name else chosen)
    assert reply.startswith("'vat' is pending again; until ")
    task_id = stuck.tasks["vat"]

    async def offered(agent_id):
        return [task["id"] for task in (await agent.call("task_get_available", agent_id=agent_id))["tasks"]]

    assert (await offered(chosen), await offered(bystander), await inbox.items()) == ([task_id], [], {})
    refusal = await agent.refusal("task_claim", task_id=task_id, agent_id=bystander)
    assert (refusal["code"], chosen in refusal["message"]) == ("INVALID_STATE", True)
    for caller in ({"agent_id": bystander}, {}):
        refusal = await agent.refusal("task_update_status", id=task_id, status="planning", **caller)
        assert refusal["code"] == "INVALID_STATE", caller
    [message] = (await agent.call("message_list", agent_id=chosen))["messages"]
    assert (message["subject"], message["task_id"]) == ("Task vat is reserved for you", task_id)
    [(_, reserved)] = await team.events("task:reserved")
    assert reserved["agent_id"] == chosen
    await agent.call("agent_heartbeat", agent_id=chosen)
    assert reply.split()[5] == reserved["until"] == await _end_reservation(team, task_id)
    assert await offered(bystander) == [task_id]
    assert (await agent.call("agent_get", id=chosen))["status"] == "online"
    assert (await agent.call("task_claim", task_id=task_id, agent_id=bystander))["success"]


async def _end_reservation(team, task_id):
    """Let a reservation run out, without waiting for it, and return when it would have."""
    from deepwork_orchestration.reservations import RESERVED
    from deepwork_sql.leases import holder_of
    from deepwork_sql.tables import leases

    change = sa.update(leases).where(leases.c.item == RESERVED + task_id).values(expires_at=1)
    async with team.database() as database:
        lease = await database.read(lambda transaction: holder_of(transaction, RESERVED + task_id))
        await database.write(lambda transaction: transaction.execute(change) and None)
    return datetime.fromtimestamp(lease.expires_at / 1000, UTC).isoformat(timespec="milliseconds")


async def test_a_reserved_task_is_free_for_everybody_once_its_agent_gives_it_back(agent, inbox, stuck):
    ann, bob = await agent.worker("ann"), await agent.worker("bob")
    await inbox.answer(stuck.item, "reassign", "ann")
    task_id = stuck.tasks["vat"]
    assert (await agent.call("task_claim", task_id=task_id, agent_id=ann))["success"]
    await agent.call("task_release", task_id=task_id, agent_id=ann)
    assert (await agent.call("task_claim", task_id=task_id, agent_id=bob))["success"]


async def test_a_task_goes_to_no_agent_that_is_unknown_offline_or_one_of_a_name(agent, inbox, stuck):
    gone = await agent.worker("gone")
    await agent.call("agent_unregister", id=gone)
    await agent.worker("twin"), await agent.worker("twin")
    problems = {"nobody": "neither the id nor the name", "gone": "is offline", "twin": "the name of several"}
    for name, problem in problems.items():
        with pytest.raises(ToolError, match=problem):
            await inbox.answer(stuck.item, "reassign", name)
    assert await agent.status(stuck.tasks["vat"]) == "failed"
    assert stuck.item in await inbox.items()


async def test_an_answer_about_several_failed_tasks_names_one(agent, inbox, make_task):
    workflow_id, tasks = await agent.workflow(make_task("a"), make_task("b"), make_task("c"))
    item_id = f"orchestration:plan.{workflow_id}"
    for task_id in tasks.values():
        await agent.move(task_id, "planning", "in_progress", "failed")
    assert (await inbox.items())[item_id].what == "plan: nothing can go on: 'a', 'b', 'c' have failed, 0 tasks wait"
    for more in ({}, {"task": "tk_other"}):
        with pytest.raises(ArgumentError, match=rf"{tasks['b']} \(b\)"):
            await inbox.answer(item_id, "retry", **more)
    assert await inbox.answer(item_id, "retry", task=tasks["b"]) == "'b' is pending again"
    assert [await agent.status(task_id) for task_id in tasks.values()] == ["failed", "pending", "failed"]


async def test_an_answer_to_a_plan_that_has_moved_on_changes_nothing(agent, inbox, team, stuck):
    """Also if it moves on between the look of the inbox and the answer of the plugin."""
    item = (await inbox.items())[stuck.item]
    async with open_context("test", team.project.root) as context:
        source = PlanInbox(context)
        await agent.move(stuck.tasks["vat"], "pending", "planning")
        with pytest.raises(UnknownItem, match="has changed"):
            await source.answer_task(f"plan.{stuck.id}", "skip", stuck.tasks["vat"], None, PERSON)
    with pytest.raises(UnknownItem):
        await inbox.answer(stuck.item, "skip", state=item.state)
    await agent.move(stuck.tasks["vat"], "in_progress", "failed")
    with pytest.raises(ArgumentError, match="has changed"):
        await inbox.answer(stuck.item, "skip", state=item.state)
    assert await agent.status(stuck.tasks["vat"]) == "failed"


async def test_nobody_but_a_person_answers_for_a_stuck_plan(agent, inbox, team, stuck):
    with pytest.raises(PersonNeeded):
        await inbox.answer(stuck.item, "skip", by=Answerer(principal="local"))
    async with open_context("test", team.project.root) as context:
        with pytest.raises(PersonNeeded):
            await PlanInbox(context).answer_task(
                f"plan.{stuck.id}", "skip", stuck.tasks["vat"], None, Answerer(principal="local")
            )
    assert await agent.status(stuck.tasks["vat"]) == "failed"


async def test_more_stuck_plans_and_failed_tasks_than_are_listed_are_counted(agent, inbox, make_task, monkeypatch):
    monkeypatch.setattr("deepwork_orchestration.inbox.MAX_LISTED", 2)
    monkeypatch.setattr("deepwork_orchestration.inbox.MAX_FAILED", 1)
    for number in range(3):
        _, tasks = await agent.workflow(make_task("a"), make_task("b"), name=f"plan {number}")
        for task_id in tasks.values():
            await agent.move(task_id, "planning", "in_progress", "failed")
    contents = await inbox.contents()
    assert [item.who for item in contents.items] == ["plan plan 0", "plan plan 1"]
    assert (contents.more, contents.items[0].detail.splitlines()[-1]) == (1, "1 more have failed")
