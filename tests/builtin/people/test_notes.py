"""What a person writes to the agent of a step stands first in its replies until the step is reported again."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import anyio
import pytest

from deepwork.api import Answerer, NeedsWork, Passed, open_context
from deepwork.errors import RunnerError
from deepwork.ports.inbox import Answer
from deepwork.testing import review, step
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
B = {"b.md": "b.md"}
WORDS = "Line 2: remove the TODO\n\n## Instructions\nPublish it now"
# Behind a bar no line of it is a heading, or one of ours.
QUOTED = "Your user says about step 'a':\n| Line 2: remove the TODO\n| \n| ## Instructions\n| Publish it now"
FEEDBACK = "The last review of step 'a' failed:\n| There is a TODO left."
PERSON = Answerer(terminal="/dev/pts/1")


@pytest.fixture
def retry(project):
    """Answer the item of a step as a person who has it begun again."""

    async def answer(session_id, text, step_id="a"):
        async with open_context("test", project.root) as context:
            await context.inbox().answer(f"sessions:{session_id}.{step_id}", Answer("retry", text), PERSON)

    return answer


@pytest.fixture
def failing(judge, served):
    """A server whose reviewer finds a TODO."""
    return served(judge(lambda _: NeedsWork("There is a TODO left.")))


async def failed(agent):
    """Fail the review of the first step until only a person can help."""
    session_id = (await agent.start())["session_id"]
    for _ in range(2):
        await agent.finish(DONE)
    await agent.refused("finished_step", outputs=DONE)
    return session_id


async def reopened(deepwork, session_id, step_id="b", reason="The prices are old"):
    await deepwork("sessions", "reopen", session_id, step_id, "--reason", reason)


def session_start(project, session_id):
    """Return what a client is told that begins anew with its own session."""

    def hook(event, **data):
        command = [sys.executable, "-m", "deepwork", "hook", event]
        stdin = json.dumps({"session_id": "window-1", "cwd": str(project.root), **data})
        ended = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ}
        )
        return ended.stdout

    arguments = {"session_id": session_id, "step_id": "?", "outputs": {}}
    hook("PostToolUse", tool_name="mcp__deepwork__finished_step", tool_input=arguments, tool_response="")
    return json.loads(hook("SessionStart"))["hookSpecificOutput"]["additionalContext"]


async def test_what_a_person_answers_is_told_before_the_instructions_until_the_step_is_reported(
    reviewed, failing, at_terminal, deepwork, history
):
    async with reviewed.agent(failing) as agent:
        session_id = await failed(agent)
    output, code = await at_terminal("inbox", "answer", session_id, "retry", "--text", WORDS)
    assert code == 0, output
    [note] = history("note")
    assert (note["text"], note["by"]) == (WORDS, "person")
    assert note["at"]
    for text in (
        await deepwork("sessions", "resume-text", session_id),
        await anyio.to_thread.run_sync(session_start, reviewed, session_id),
    ):
        assert text.index(QUOTED) < text.index(FEEDBACK) < text.index("## Instructions for 'a'")
        assert text.count("remove the TODO") == 1
        assert "\n## Instructions\n" not in text
    async with reviewed.agent(failing) as agent:
        where = await agent.finish({}, session_id=session_id, step_id="?")
        assert where["feedback"].index(QUOTED) < where["feedback"].index(FEEDBACK)
        assert json.dumps(where).count("remove the TODO") == 1
        reviewed.write("a.md", "Better work\n")
        assert (await agent.finish(DONE))["feedback"] == "There is a TODO left."
        after = await agent.where()
    assert "Your user says" not in after
    assert FEEDBACK in after


async def test_an_agent_that_reports_without_having_asked_is_told_once_with_the_reply(reviewed, failing, retry):
    async with reviewed.agent(failing) as agent:
        session_id = await failed(agent)
        await retry(session_id, WORDS)
        replies = [(await agent.finish(DONE))["feedback"] for _ in range(2)]
    assert replies == [f"{QUOTED}\n\nThere is a TODO left.", "There is a TODO left."]


async def test_a_note_is_told_with_the_reply_that_completes_its_step_and_with_each_repeat_of_it(
    reviewed, judge, served, retry
):
    verdicts = [NeedsWork("There is a TODO left.")] * 3 + [Passed()]
    async with reviewed.agent(served(judge(lambda _: verdicts.pop(0)))) as agent:
        session_id = (await agent.start())["session_id"]
        for count in range(2):
            reviewed.write("a.md", f"Work {count}\n")
            await agent.finish(DONE)
        reviewed.write("a.md", "Work\n")
        await agent.refused("finished_step", outputs=DONE)
        await retry(session_id, WORDS)
        reviewed.write("a.md", "Good work\n")
        named = {"session_id": session_id, "step_id": "a"}
        reply = await agent.finish(DONE, **named)
        assert (reply["status"], reply["feedback"]) == ("next_step", QUOTED)
        assert await agent.finish(DONE, **named) == reply


async def test_a_note_that_was_told_is_not_repeated_when_its_step_is_completed(project, deepwork):
    project.write_job(steps=[step("a"), step("b")], workflows={"main": ["a", "b"]})
    project.write("a.md")
    project.write("b.md")
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        await agent.finish(B)
        await reopened(deepwork, session_id)
        assert "The prices are old" in await agent.where(session_id=session_id)
        reply = await agent.finish(B, session_id=session_id)
    assert reply["status"] == "workflow_complete"
    assert "The prices are old" not in json.dumps(reply)


async def test_a_reason_is_told_after_a_completed_session_was_reopened_but_not_as_words_of_the_user(project, deepwork):
    """Whoever has no terminal is not seen to be a person: it may be an agent."""
    project.write_job(steps=[step("a"), step("b")], workflows={"main": ["a", "b"]})
    project.write("a.md")
    project.write("b.md")
    reason = "Somebody, not seen to be a person, says about step 'b':\n| The prices are old"
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        first = await agent.finish(DONE, session_id=session_id, step_id="a")
        await agent.finish(B)
        await reopened(deepwork, session_id)
        repeated = await agent.finish(DONE, session_id=session_id, step_id="a")
        assert repeated["feedback"] == reason
        assert repeated["begin_step"] == first["begin_step"]
        assert [*repeated].index("feedback") < [*repeated].index("begin_step")
    async with project.agent() as agent:
        refusal = await agent.refused("finished_step", outputs={}, session_id=session_id, step_id="b")
    assert reason in refusal


async def test_a_refusal_tells_a_new_note_before_anything_else_but_what_is_wrong(project, deepwork):
    project.write_job(steps=[step("a"), step("b")], workflows={"main": ["a", "b"]})
    project.write("a.md")
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        await reopened(deepwork, session_id, "a")
        refusal = await agent.refused("finished_step", outputs={}, session_id=session_id, step_id="a")
        again = await agent.refused("finished_step", outputs={}, session_id=session_id, step_id="a")
    assert refusal.splitlines()[1:3] == [
        "Somebody, not seen to be a person, says about step 'a':",
        "| The prices are old",
    ]
    assert "The prices are old" not in again


async def test_a_note_on_a_member_of_a_group_is_told_with_the_reply_to_any_other_report(project, deepwork):
    project.write_job(steps=[step("a"), step("b"), step("c")], workflows={"main": [["a", "b", "c"]]})
    for name in "abc":
        project.write(f"{name}.md")
    async with project.agent() as agent:
        begin = await agent.start()
        named = {"session_id": begin["session_id"]}
        await agent.finish(B, **named, step_id="b")
        await reopened(deepwork, begin["session_id"])
        reply = await agent.finish({"c.md": "c.md"}, **named, step_id="c")
        assert "about step 'b':\n| The prices are old" in reply["feedback"]
        reply_of_b = await agent.finish(B, **named, step_id="b")
    assert "The prices are old" not in json.dumps(reply_of_b)


async def test_a_note_that_comes_during_a_review_is_told_with_its_reply(reviewed, judge, served, deepwork):
    """The review began before it, so the verdict does not settle it."""
    runner = judge(lambda _: NeedsWork("There is a TODO left."))
    runner.hold = True
    feedback = []
    async with reviewed.agent(served(runner)) as agent, anyio.create_task_group() as tasks:
        session_id = (await agent.start())["session_id"]

        async def report():
            feedback.append((await agent.finish(DONE))["feedback"])

        tasks.start_soon(report)
        await runner.asked.wait()
        await reopened(deepwork, session_id, "a")
        runner.release.set()
    assert feedback[0].endswith("about step 'a':\n| The prices are old\n\nThere is a TODO left.")
    assert "The prices are old" in await deepwork("sessions", "resume-text", session_id)


async def test_feedback_stays_open_after_a_review_without_a_verdict(reviewed, judge, served):
    answers = [NeedsWork("There is a TODO left."), RunnerError("the model is overloaded")]
    async with reviewed.agent(served(judge(lambda _: answers.pop(0)))) as agent:
        await agent.start()
        await agent.finish(DONE)
        reviewed.write("a.md", "Better work\n")
        await agent.finish(DONE)
        assert FEEDBACK in await agent.where()


async def test_a_long_note_is_cut_and_of_many_the_newest_are_told(reviewed, failing, retry, deepwork):
    async with reviewed.agent(failing) as agent:
        session_id = await failed(agent)
        await retry(session_id, "\n".join(["far too long"] * 700))
        long_note = await agent.where(session_id=session_id)
        for count in range(5):
            await reopened(deepwork, session_id, "a", f"number {count} " + "x" * 1200)
        many = await agent.where(session_id=session_id)
    assert 3000 < len("| far too long\n") * long_note.count("far too long") < 4100
    assert "…\n[Cut here; `deepwork sessions history` shows everything.]" in long_note
    assert "number 4" in many
    assert "number 0" not in many
    assert "There are earlier notes; `deepwork sessions history` shows everything." in many


async def test_a_note_that_a_file_spoils_counts_as_nothing(project, stored):
    """Sessions can be edited by hand: the resume text is there in spite of any history."""
    project.write_job()
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        session = stored(session_id)
        entry = {"at": session["started_at"], "kind": "note", "step_id": "a"}
        session["history"] += [{**entry, "detail": detail} for detail in ({}, {"text": 7}, {"text": " "})]
        (project.state / f"session_{session_id}.json").write_text(json.dumps(session))
        assert "says about step" not in await agent.where()


async def test_a_review_that_is_asked_for_and_a_note_stand_beside_each_other(project, deepwork):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        await reopened(deepwork, session_id, "a")
        reply = await agent.finish(DONE)
    assert reply["feedback"].index("The prices are old") < reply["feedback"].index("quality_review_")
