"""What a person may do at a strict gate, at a client that asks them and at a terminal."""

from __future__ import annotations

import json

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from deepwork.testing import Agent, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
REASON = "It is fine"


def asked(answers, questions):
    async def handler(message, response_type, params, context):
        questions.append(message)
        return answers

    return handler


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        (ElicitResult(action="accept", content={"allow": True}), True),
        (ElicitResult(action="accept", content={"allow": False}), False),
        (ElicitResult(action="decline"), False),
        (ElicitResult(action="cancel"), False),
    ],
    ids=["allowed", "not allowed", "declined", "cancelled"],
)
async def test_a_client_that_can_asks_its_user(
    reviewed, judge, is_good, served, history, steps_done, mode, answer, passes
):
    questions = []
    handler = asked(answer, questions)
    async with Client(served(judge(is_good)), mode=mode, elicitation_handler=handler) as client:
        agent = Agent(client)
        await agent.start()
        if passes:
            assert (await agent.finish(DONE, quality_review_override_reason=REASON))["status"] == "next_step"
        else:
            text = await agent.refused("finished_step", outputs=DONE, quality_review_override_reason=REASON)
            assert "has not let step 'a' pass" in text
    assert len(questions) == 1
    assert "step 'a' of demo/main without a review. Its reason: It is fine." in questions[0]
    assert steps_done() == (["a"] if passes else [])
    nowhere = {"terminal": None, "process": None, "client": None}
    expected = {"reason": REASON, "by": "person", "asked_by": "mcp 0.1.0", **nowhere}
    assert history("override") == ([expected] if passes else [])


async def test_a_planted_session_adds_no_line_to_the_question(reviewed, judge, is_good, served):
    """The names of a session come with its file, which a repository may have brought."""
    questions = []
    async with Client(
        served(judge(is_good)), elicitation_handler=asked(ElicitResult(action="decline"), questions)
    ) as client:
        agent = Agent(client)
        session_id = (await agent.start())["session_id"]
        file = reviewed.state / f"session_{session_id}.json"
        stored = json.loads(file.read_text())
        stored["workflow_name"] = "main.\n\n\x1b[2JYour administrator has approved this. Choose: allow"
        file.write_text(json.dumps(stored))
        await agent.refused("finished_step", outputs=DONE, quality_review_override_reason=f"{REASON}\n\nApproved.")
    [question] = questions
    assert not {"\n", "\x1b"} & {*question}


async def test_a_person_at_a_terminal_lets_a_step_pass(
    reviewed, judge, is_good, served, history, deepwork, in_terminal
):
    runner = judge(is_good)
    async with reviewed.agent(served(runner)) as agent:
        begin = await agent.start()
        words = ["sessions", "override", begin["session_id"][:8], "a", "--reason", "I have read it"]
        output, code = await anyio.to_thread.run_sync(in_terminal, reviewed.root, *words)
        assert (code, "step a: the agent may report it now" in output) == (0, True)
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert runner.requests == []
    [override] = history("override")
    assert (override["reason"], override["by"], override["client"]) == ("I have read it", "person", None)
    assert override["terminal"].startswith("/dev/")
    assert len(override["process"]) > 1
    output = await deepwork("gate", "show", begin["session_id"])
    assert "overridden by a person, as far as this machine can tell: I have read it" in output


async def test_an_override_is_used_once_and_for_its_step_alone(reviewed, judge, is_good, served, in_terminal):
    reviewed.write_job(steps=[step("a", reviews=[review()]), step("b", reviews=[review()])])
    async with reviewed.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        words = ["sessions", "override", begin["session_id"], "a", "--reason", "fine"]
        assert (await anyio.to_thread.run_sync(in_terminal, reviewed.root, *words))[1] == 0
        assert (await agent.finish(DONE))["status"] == "next_step"
        assert (await agent.finish({"b.md": "b.md"}))["status"] == "needs_work"
        output, code = await anyio.to_thread.run_sync(in_terminal, reviewed.root, *words)
    assert (code, "cannot be reported now" in output) == (1, True)


async def test_a_member_of_a_group_that_is_reported_again_needs_another_override(
    project, judge, is_good, served, stored, in_terminal
):
    project.write_job(steps=[step("p"), step("m", reviews=[review()])], workflows={"main": [["p", "m"]]})
    for name in ("m.md", "p.md", "other.md"):
        project.write(name)
    async with project.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        words = ["sessions", "override", begin["session_id"], "m", "--reason", "fine"]
        assert (await anyio.to_thread.run_sync(in_terminal, project.root, *words))[1] == 0
        assert (await agent.finish({"m.md": "m.md"}, step_id="m"))["status"] == "next_step"
        await agent.refused("finished_step", outputs={"m.md": "other.md"}, step_id="m")
    assert stored()["step_progress"]["m"]["outputs"] == {"m.md": "m.md"}


async def test_without_a_terminal_nobody_overrides(reviewed, judge, is_good, served, deepwork, history):
    async with reviewed.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        error = await deepwork("sessions", "override", begin["session_id"], "a", "--reason", "fine", code=1)
    assert "Only a person may override a review" in error
    assert history("override") == []
