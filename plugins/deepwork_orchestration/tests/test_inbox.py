"""Tasks and messages for people wait in the inbox, are answered there, and wake no agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest
import sqlalchemy as sa

from deepwork.api import Answerer, open_context
from deepwork.errors import PersonNeeded, UnknownItem

pytestmark = pytest.mark.anyio

PERSON = Answerer(user="ada", terminal="/dev/pts/1")


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


@pytest.mark.slow
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
async def test_a_long_message_is_read_only_as_far_as_it_is_shown(agent, inbox, body, detail):
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
    completion = {"id": tasks["sign"], "status": "completed", "outcome": "signed"}
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
        ("task_update_status", {**completion, "status": "planning", "agent_id": person}),
        ("task_update_status", {**completion, "status": "failed", "error": "no", "agent_id": coordinator}),
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
    listing = (await anyio.run_process(command, env={**os.environ})).stdout.decode()
    assert "ada (says that it is a person)" in listing
    assert listing.count("says that it is a person") == 1


async def test_a_task_that_such_an_agent_has_held_since_an_earlier_release_is_taken_back(agent, inbox, team, make_task):
    """That release let an agent claim what was for people once it had said that it was one."""
    _, tasks = await agent.workflow(make_task("sign"))
    liar = await agent.worker("ada", metadata={"human": True})
    await agent.call("task_claim", task_id=tasks["sign"], agent_id=liar)
    await agent.call("task_update_status", id=tasks["sign"], status="planning", agent_id=liar)
    change = sa.text("UPDATE orchestration_tasks SET required_capabilities = '[\"human\"]'")
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
