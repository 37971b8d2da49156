"""Tasks and messages for people wait in the inbox, are answered there, and wake no agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import anyio
import pytest
import sqlalchemy as sa

from deepwork.api import Answerer, ArgumentError, PersonNeeded, ToolError, UnknownItem, open_context
from deepwork_orchestration import tables
from deepwork_orchestration.inbox import PlanInbox

pytestmark = pytest.mark.anyio

PERSON = Answerer(user="ada", terminal="/dev/pts/1")


@pytest.fixture
def inbox(team):
    """Read and answer the inbox in a command, as `deepwork inbox` does."""

    class Inbox:
        async def contents(self):
            async with open_context("test", team.project.root) as context:
                return await context.inbox().items(PERSON)

        async def items(self):
            contents = await self.contents()
            assert contents.failures == ()
            return {item.id: item for item in contents.items}

        async def answer(self, item_id, action, text=None, by=PERSON, **more):
            async with open_context("test", team.project.root) as context:
                return await context.inbox().answer(item_id, action, text, by, **more)

    return Inbox()


async def test_nothing_waits_and_no_database_is_made_before_there_is_one(project, monkeypatch):
    monkeypatch.delenv("DEEPWORK_DATABASE_URL", raising=False)
    async with open_context("test", project.root) as context:
        contents = await context.inbox().items(PERSON)
    assert (contents.items, contents.failures) == ((), ())
    assert not (project.root / ".deepwork").exists()


async def test_a_task_for_people_waits_once_it_is_ready(agent, inbox, make_task):
    workflow_id, tasks = await agent.workflow(
        make_task("build"), make_task("sign", "build", required_capabilities=["human"]), name="release"
    )
    assert await inbox.items() == {}
    await agent.finish(tasks["build"])
    items = await inbox.items()
    item = items[f"orchestration:task.{tasks['sign']}"]
    assert (item.kind, item.what, item.held_by) == ("human-task", "release: sign", None)
    assert item.reference == {"kind": "task", "id": tasks["sign"], "workflow_id": workflow_id}
    assert [action.name for action in item.actions] == ["claim", "complete"]


async def test_a_person_takes_a_task_gives_it_back_and_completes_it(agent, inbox, team, make_task):
    _, tasks = await agent.workflow(make_task("sign", required_capabilities=["human"]), make_task("ship", "sign"))
    item_id = f"orchestration:task.{tasks['sign']}"
    ready = (await inbox.items())[item_id]
    assert "is yours" in await inbox.answer(item_id, "claim")
    held = (await inbox.items())[item_id]
    assert (held.held_by, [action.name for action in held.actions]) == ("person:local", ["complete", "release"])
    [(_, claim)] = await team.events("task:claimed")
    assert claim["claimed_by"] == "person:local"
    assert await inbox.answer(item_id, "release") == "'sign' is given back"
    again = (await inbox.items())[item_id]
    assert (again.held_by, again.state != ready.state) == (None, True)
    assert await inbox.answer(item_id, "complete", "Signed with the key of 2026") == "'sign' is completed"
    assert await inbox.items() == {}
    stored = await agent.call("task_get", id=tasks["sign"])
    assert (stored["status"], stored["outcome"]) == ("completed", "Signed with the key of 2026")
    assert stored["outcome_detail"]["answered"]["terminal"] == "/dev/pts/1"
    assert await agent.status(tasks["ship"]) == "pending"
    [person] = [listed for listed in (await agent.call("agent_list"))["agents"] if listed["metadata"]]
    assert person["name"] == "person:local"
    assert stored["outcome_detail"]["answered"]["user"] == "ada"
    with pytest.raises(UnknownItem):
        await inbox.answer(item_id, "complete", "again")


async def test_a_person_has_days_for_a_task_and_not_the_lease_of_agents(agent, inbox, team, make_task):
    _, tasks = await agent.workflow(make_task("sign", required_capabilities=["human"]))
    await inbox.answer(f"orchestration:task.{tasks['sign']}", "claim")
    async with team.database() as database:
        from deepwork_orchestration.claims import item
        from deepwork_sql import leases

        lease, now = await database.read(
            lambda transaction: (leases.holder_of(transaction, item(tasks["sign"])), transaction.now)
        )
    assert lease.expires_at - now > 6 * 24 * 3600 * 1000


async def test_a_message_to_a_person_waits_and_the_reply_reaches_its_sender(agent, inbox):
    worker = await agent.worker()
    sent = await agent.call(
        "message_send", sender_id=worker, recipient_id="person", message_type="query", subject="Ports", body="Which?"
    )
    item_id = f"orchestration:message.{sent['id']}"
    item = (await inbox.items())[item_id]
    sender = f"agent {worker} ('worker')"
    assert (item.who, item.what, item.detail) == (sender, "To person:local: Ports", "Which?")
    await inbox.answer(item_id, "reply", "Port 80")
    assert await inbox.items() == {}
    [reply] = (await agent.call("message_list", agent_id=worker))["messages"]
    assert (reply["body"], reply["message_type"], reply["reply_to_id"]) == ("Port 80", "response", sent["id"])
    second = await agent.call(
        "message_send", sender_id=worker, recipient_id="person", message_type="notification", body="Done."
    )
    await inbox.answer(f"orchestration:message.{second['id']}", "read")
    assert await inbox.items() == {}


async def test_a_plan_with_more_tasks_for_people_than_are_listed_hides_no_other_plan(agent, inbox, make_task):
    """The oldest of each plan are listed, and the rest is counted."""
    many = [make_task(f"sign {number}", required_capabilities=["human"]) for number in range(1001)]
    await agent.workflow(*many, name="flood")
    _, tasks = await agent.workflow(
        make_task("release", required_capabilities=["human"]), make_task("no", required_capabilities=["Human"])
    )
    contents = await inbox.contents()
    assert contents.failures == ()
    listed = [item.id for item in contents.items]
    assert f"orchestration:task.{tasks['release']}" in listed
    assert (len(listed), contents.more) == (500, 502)


async def test_a_flood_of_messages_hides_neither_what_is_urgent_nor_what_others_ask(agent, inbox, monkeypatch):
    monkeypatch.setattr("deepwork_orchestration.inbox.MAX_LISTED", 4)
    loud, quiet = await agent.worker("loud"), await agent.worker("quiet")

    async def send(sender, body, **more):
        message = {"sender_id": sender, "recipient_id": "person", "message_type": "query", "body": body, **more}
        await agent.call("message_send", **message)

    for number in range(6):
        await send(loud, f"low {number}", priority="low")
    await send(loud, "first")
    await send(quiet, "quiet", priority="low")
    await send(loud, "urgent", priority="urgent")
    contents = await inbox.contents()
    assert [item.detail for item in contents.items] == ["urgent", "first", "low 0", "quiet"]
    assert ([item.urgency for item in contents.items], contents.more) == ([2, 0, -1, -1], 5)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ('\n"\\\x01é' * 20_000, '\n"\\\x01é' * 800),
        ({"text": "x" * 50_000}, '{"text":"' + "x" * 3991),
        ({"text": "short"}, '{"text": "short"}'),
    ],
    ids=["escapes", "object", "short"],
)
async def test_of_a_long_message_no_more_is_read_than_is_shown(agent, inbox, body, detail):
    worker = await agent.worker()
    await agent.call("message_send", sender_id=worker, recipient_id="person", message_type="query", body=body)
    [item] = (await inbox.items()).values()
    assert item.detail[:3900] == detail[:3900]
    assert len(item.detail) <= 4000


async def person_id(agent):
    """Find the agent that stands for the user."""
    agents = (await agent.call("agent_list"))["agents"]
    return next(listed["id"] for listed in agents if listed["name"] == "person:local")


async def test_no_tool_acts_in_the_name_of_a_person_or_settles_what_waits_for_one(agent, inbox, make_task):
    worker, coordinator = await agent.worker(), await agent.coordinator()
    _, tasks = await agent.workflow(make_task("sign", required_capabilities=["human"]))
    task_item = f"orchestration:task.{tasks['sign']}"
    await inbox.answer(task_item, "claim")
    person = await person_id(agent)
    query = {"sender_id": worker, "message_type": "query", "body": "Which?"}
    sent = (await agent.call("message_send", recipient_id=person, **query))["id"]
    before = {item_id: item.state for item_id, item in (await inbox.items()).items()}
    assert sorted(before) == sorted([task_item, f"orchestration:message.{sent}"])
    message = {"recipient_id": worker, "message_type": "response", "body": "Yes, I allow it"}
    done = {"id": tasks["sign"], "status": "completed", "outcome": "signed"}
    for tool, arguments in (
        ("message_send", {"sender_id": person, **message}),
        ("message_broadcast", {"sender_id": person, "message_type": "notification", "body": "I allow it"}),
        ("message_mark_read", {"message_ids": [sent]}),
        ("message_archive", {"message_ids": [sent]}),
        ("agent_heartbeat", {"agent_id": person}),
        ("agent_update", {"id": person, "status": "offline"}),
        ("agent_unregister", {"id": person}),
        ("task_claim", {"task_id": tasks["sign"], "agent_id": person}),
        ("task_release", {"task_id": tasks["sign"], "agent_id": person}),
        ("task_release", {"task_id": tasks["sign"], "agent_id": coordinator}),
        ("task_update_status", {**done, "status": "planning", "agent_id": person}),
        ("task_update_status", {**done, "status": "failed", "error": "no", "agent_id": coordinator}),
        ("checkpoint_add", {"task_id": tasks["sign"], "type": "progress", "summary": "s", "agent_id": person}),
    ):
        refusal = await agent.refusal(tool, **arguments)
        assert (tool, refusal["code"]) == (tool, "INVALID_STATE")
    assert (await agent.call("message_get", id=sent))["status"] == "unread"
    assert {item_id: item.state for item_id, item in (await inbox.items()).items()} == before


async def test_an_agent_that_says_that_it_is_a_person_is_shown_so_and_its_messages_are_its_own(agent, inbox, team):
    worker, liar = await agent.worker(), await agent.worker("ada", metadata={"human": True})
    await agent.call("message_send", sender_id=worker, recipient_id=liar, message_type="query", body="Which?")
    assert await inbox.items() == {}
    command = [sys.executable, "-m", "deepwork", "plan", "agents", "--path", str(team.project.root)]
    shown = (await anyio.run_process(command, env={**os.environ})).stdout.decode()
    assert "ada (says that it is a person)" in shown
    assert shown.count("says that it is a person") == 1


async def test_a_task_that_such_an_agent_has_held_since_an_earlier_release_is_taken_back(agent, inbox, team, make_task):
    """That release let an agent claim what was for people once it had said that it was one."""
    _, tasks = await agent.workflow(make_task("sign"))
    liar = await agent.worker("ada", metadata={"human": True})
    await agent.call("task_claim", task_id=tasks["sign"], agent_id=liar)
    await agent.call("task_update_status", id=tasks["sign"], status="planning", agent_id=liar)
    change = sa.update(tables.tasks).values(required_capabilities=["human"])
    async with team.database() as database:
        await database.write(lambda transaction: transaction.execute(change) and None)
    item_id = f"orchestration:task.{tasks['sign']}"
    item = (await inbox.items())[item_id]
    assert (item.held_by, [action.name for action in item.actions]) == (None, ["claim", "complete"])
    assert await inbox.answer(item_id, "complete", "Signed by hand") == "'sign' is completed"
    task = await agent.call("task_get", id=tasks["sign"])
    assert (task["status"], task["outcome"]) == ("completed", "Signed by hand")


async def test_a_program_with_a_token_answers_nothing(agent, inbox, make_task):
    worker = await agent.worker()
    _, tasks = await agent.workflow(make_task("sign", required_capabilities=["human"]))
    sent = await agent.call("message_send", sender_id=worker, recipient_id="person", message_type="query", body="?")
    before = await inbox.items()
    program = Answerer(principal="local")
    for item_id, actions in (
        (f"orchestration:task.{tasks['sign']}", ("claim", "complete")),
        (f"orchestration:message.{sent['id']}", ("reply", "read")),
    ):
        for action in actions:
            with pytest.raises(PersonNeeded):
                await inbox.answer(item_id, action, "Yes", by=program)
    assert await inbox.items() == before


async def test_a_program_lists_tasks_for_people_and_cannot_do_them(agent, team, make_task):
    _, tasks = await agent.workflow(make_task("sign", required_capabilities=["human"]))

    def deepwork(*arguments):
        command = [sys.executable, "-m", "deepwork", "inbox", *arguments, "--path", str(team.project.root)]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ})

    assert f"orchestration:task.{tasks['sign']}" in deepwork().stdout
    ended = deepwork("answer", f"task.{tasks['sign']}", "complete", "--text", "Signed")
    assert (ended.returncode, "Only a person may" in ended.stderr) == (1, True)
    assert await agent.status(tasks["sign"]) == "pending"


# An agent is never woken for what only a person can do.


@pytest.fixture
def hook(team):
    def hook(event, window, **data):
        command = [sys.executable, "-m", "deepwork", "hook", event]
        stdin = json.dumps({"session_id": window, "cwd": str(team.project.root), "hook_event_name": event, **data})
        environment = {**os.environ, "DEEPWORK_HOOK_SECONDS": "60"}
        pipes = {"input": stdin, "capture_output": True, "text": True, "timeout": 60}
        ended = subprocess.run(command, **pipes, cwd="/", env=environment)
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout

    return hook


def called(tool, reply, **arguments):
    response = [{"type": "text", "text": json.dumps(reply)}]
    return {"tool_name": f"mcp__deepwork__{tool}", "tool_input": arguments, "tool_response": response}


@pytest.fixture
async def leader(team, hook):
    """An agent in a window, in the middle of a workflow whose step is to carry out a plan."""
    team.project.write_job()
    agent = await team.agent(tools=["orchestration", "core"])
    begin = await agent.start()
    agent_id = await agent.worker("leader")
    hook("PostToolUse", "window", **called("start_workflow", {"begin_step": begin}))
    hook("PostToolUse", "window", **called("agent_register", {"id": agent_id}))
    return agent, agent_id, begin["session_id"]


async def test_an_agent_is_not_reminded_while_all_that_is_left_is_for_people(leader, hook, inbox, make_task):
    agent, _, session_id = leader
    _, tasks = await agent.workflow(make_task("build"), make_task("sign", "build", required_capabilities=["human"]))
    await agent.finish(tasks["build"])
    assert hook("Stop", "window") == ""
    await inbox.answer(f"orchestration:task.{tasks['sign']}", "complete", "Signed")
    assert session_id in hook("Stop", "window")


async def test_an_agent_is_reminded_while_there_is_work_for_agents(leader, hook, make_task):
    agent, _, session_id = leader
    await agent.workflow(make_task("build"), make_task("sign", required_capabilities=["human"]))
    assert session_id in hook("Stop", "window")


async def test_an_agent_is_not_reminded_while_a_person_has_not_read_its_question(leader, hook, inbox):
    agent, agent_id, session_id = leader
    sent = await agent.call(
        "message_send", sender_id=agent_id, recipient_id="person", message_type="query", body="Which port?"
    )
    assert hook("Stop", "window") == ""
    await inbox.answer(f"orchestration:message.{sent['id']}", "reply", "Port 80")
    reason = json.loads(hook("Stop", "window"))["reason"]
    assert "Port 80" in reason
    assert session_id in reason


async def test_messages_to_people_are_handed_over_to_no_client_session(agent, hook):
    worker = await agent.worker()
    await agent.call("message_send", sender_id=worker, recipient_id="person", message_type="query", body="Which port?")
    person = await person_id(agent)
    hook("PostToolUse", "window", **called("agent_register", {"id": person}))
    assert hook("PostToolUse", "window", **called("task_get", {}, id="task_1")) == ""
    assert hook("Stop", "window") == ""
    assert (await agent.call("message_count_unread", agent_id=person))["count"] == 1


# Plans in which nothing can go on


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
    """It is offered to that agent whatever it can do, which is told of it, and to nobody else; then to everybody."""
    chosen = await agent.worker("ann", capabilities=["css"])
    other = await agent.worker("bob")
    done = await inbox.answer(stuck.item, "reassign", "ann" if by_name else chosen)
    assert done.startswith("'vat' is pending again; until ")
    task_id = stuck.tasks["vat"]

    async def offered(agent_id):
        return [task["id"] for task in (await agent.call("task_get_available", agent_id=agent_id))["tasks"]]

    assert (await offered(chosen), await offered(other), await inbox.items()) == ([task_id], [], {})
    refusal = await agent.refusal("task_claim", task_id=task_id, agent_id=other)
    assert (refusal["code"], chosen in refusal["message"]) == ("INVALID_STATE", True)
    for caller in ({"agent_id": other}, {}):
        refusal = await agent.refusal("task_update_status", id=task_id, status="planning", **caller)
        assert refusal["code"] == "INVALID_STATE", caller
    [message] = (await agent.call("message_list", agent_id=chosen))["messages"]
    assert (message["subject"], message["task_id"]) == ("Task vat is reserved for you", task_id)
    [(_, reserved)] = await team.events("task:reserved")
    assert reserved["agent_id"] == chosen
    await agent.call("agent_heartbeat", agent_id=chosen)
    assert done.split()[5] == reserved["until"] == await _end_reservation(team, task_id)
    assert await offered(other) == [task_id]
    assert (await agent.call("agent_get", id=chosen))["status"] == "online"
    assert (await agent.call("task_claim", task_id=task_id, agent_id=other))["success"]


async def _end_reservation(team, task_id):
    """Let a reservation run out, without waiting for it, and return when it would have."""
    from deepwork_orchestration.claims import RESERVED
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


async def test_of_several_failed_tasks_the_answer_names_one(agent, inbox, make_task):
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
    seen = (await inbox.items())[stuck.item]
    async with open_context("test", team.project.root) as context:
        source = PlanInbox(context)
        await agent.move(stuck.tasks["vat"], "pending", "planning")
        with pytest.raises(UnknownItem, match="has changed"):
            await source.answer_task(f"plan.{stuck.id}", "skip", stuck.tasks["vat"], None, PERSON)
    with pytest.raises(UnknownItem):
        await inbox.answer(stuck.item, "skip", state=seen.state)
    await agent.move(stuck.tasks["vat"], "in_progress", "failed")
    with pytest.raises(ArgumentError, match="has changed"):
        await inbox.answer(stuck.item, "skip", state=seen.state)
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
