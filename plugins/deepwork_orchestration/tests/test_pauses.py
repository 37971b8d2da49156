"""A person pauses a plan: none of its tasks is handed out, and the holders of tasks hear of it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from deepwork.api import Answerer, ToolCall, open_context
from deepwork_orchestration import interventions, mail, pauses
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.opening import open_database

pytestmark = pytest.mark.anyio

FIRST = {"name": "first", "description": "d", "sequence": 1}
SECOND = {"name": "second", "description": "d", "sequence": 2}


@pytest.fixture
def write(team):
    """Do something as a person does, from another process as far as the server can tell."""

    async def write(work, *arguments):
        async with open_context("orchestration", team.project.root) as context:
            call = ToolCall(principal="person:local")
            return await open_database(context).write(call, lambda transaction: work(transaction, *arguments))

    return write


async def test_no_task_of_a_paused_plan_is_handed_out_until_it_goes_on(team, write):
    agent = await team.agent()
    plan, tasks = await agent.workflow(FIRST, SECOND)
    worker = await agent.worker()
    await write(pauses.pause, plan, "the budget is spent")
    refusal = await agent.refusal("task_claim", task_id=tasks["first"], agent_id=worker)
    assert (refusal["code"], refusal["recoverable"]) == ("PLAN_PAUSED", False)
    assert refusal["message"] == "A person has paused this plan: the budget is spent; finish no step, wait."
    assert (await agent.call("task_get_available", agent_id=worker))["tasks"] == []
    await write(pauses.unpause, plan)
    assert (await agent.call("task_claim", task_id=tasks["first"], agent_id=worker))["success"]


async def test_whoever_holds_a_task_of_it_hears_of_it_as_long_as_it_lasts(team, write):
    agent = await team.agent()
    plan, tasks = await agent.workflow(FIRST, SECOND)
    holder, bystander = await agent.worker("holder"), await agent.worker("other")
    await agent.call("task_claim", task_id=tasks["first"], agent_id=holder)

    async def told(agent_id):
        async with open_context("test", team.project.root) as context:
            return [message.about for message in await mail.agent_mail(context).unread(agent_id) if message.is_pause]

    await write(pauses.pause, plan, "the budget is spent")
    [text] = await told(holder)
    assert text.startswith("A person has paused this plan: the budget is spent; finish no step, wait. It is ")
    assert await told(bystander) == []
    await write(pauses.unpause, plan)
    assert await told(holder) == []


async def test_what_a_person_says_when_a_plan_goes_on_reaches_those_who_hold_a_task_of_it(team):
    agent = await team.agent()
    plan, tasks = await agent.workflow(FIRST, SECOND)
    holder, bystander = await agent.worker("holder"), await agent.worker("other")
    await agent.call("task_claim", task_id=tasks["first"], agent_id=holder)
    by = Answerer(principal="local", user="ann", client="dashboard")
    async with open_context("orchestration", team.project.root) as context:
        await interventions.pause(context, by, plan, "the budget is spent")
        await interventions.unpause(context, by, plan, "Round to thousands.")
        unread = mail.agent_mail(context).unread
        [message], of_other = await unread(holder), await unread(bystander)
    assert message.text.split("\n") == ["The plan plan goes on", "Round to thousands."]
    assert message.answer.startswith("These are the words of a person, as far as this machine can tell; ")
    assert of_other == []


async def test_what_is_over_or_paused_is_not_paused_and_what_goes_on_not_unpaused(team, write):
    agent = await team.agent()
    plan, _ = await agent.workflow(FIRST)
    with pytest.raises(OrchestrationError, match="is not paused"):
        await write(pauses.unpause, plan)
    await write(pauses.pause, plan, "first")
    with pytest.raises(OrchestrationError, match="is paused already"):
        await write(pauses.pause, plan, "second")


@pytest.mark.parametrize("command", [["pause", "wf_1", "--reason", "x"], ["unpause", "wf_1"]])
def test_only_a_person_at_a_terminal_pauses_a_plan(project, command):
    arguments = [sys.executable, "-m", "deepwork", "plan", *command, "--path", str(project.root)]
    ended = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("Error: Only a person may")


async def test_the_hook_tells_of_it_once(team, write):
    agent = await team.agent()
    plan, tasks = await agent.workflow(FIRST)
    worker = await agent.worker()
    await agent.call("task_claim", task_id=tasks["first"], agent_id=worker)
    about = {"event": "PostToolUse", "session": "window-1", "tool": "mcp__deepwork__task_claim"}
    claimed = {"arguments": json.dumps({"task_id": tasks["first"], "agent_id": worker}), "response": "{}"}
    await write(pauses.pause, plan, "the budget is spent")
    texts = []
    for arguments in ({**about, **claimed}, {**about, "tool": "Bash"}, {**about, "tool": "Bash"}):
        result = await agent.client.call_tool("hook", arguments)
        texts.append(result.content[0].text)
    assert ["the budget is spent" in text for text in texts] == [True, False, False]
