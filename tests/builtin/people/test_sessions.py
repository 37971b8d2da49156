"""What of the sessions and of the set-up waits for a person."""

from __future__ import annotations

import json

import anyio
import pytest

from deepwork.api import NeedsWork, Passed
from deepwork.errors import RunnerError, RunnerUnavailable
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


async def test_a_step_waits_once_its_last_attempt_has_failed(reviewed, judge, served, waiting):
    async with reviewed.agent(served(judge(lambda _: NeedsWork("Too short.")))) as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        await agent.finish(DONE)
        assert await waiting() == {}
        await agent.refused("finished_step", outputs=DONE)
    item = (await waiting())["failed-gate"]
    assert item["id"] == f"sessions:{session_id}.a"
    assert item["what"] == "demo/main: step 'a' needs work after 3 reviews"
    assert "Too short." in item["detail"]
    assert item["reference"] == {"kind": "session", "id": session_id, "step_id": "a"}
    assert [action["name"] for action in item["actions"]] == ["override", "retry", "abort"]
    assert (item["principal"], item["held_by"], item["source"]) == ("local", None, "sessions")


async def test_a_step_that_waits_shows_the_files_that_were_reported_and_the_criteria(
    reviewed, failed, waiting, deepwork
):
    session_id = await failed(reviewed)
    item = (await waiting())["failed-gate"]
    assert (item["files"], item["criteria"]) == (["a.md"], ["Good: Is it good?"])
    assert json.loads(await deepwork("inbox", "show", session_id, "--json")) == item
    output = await deepwork("inbox", "show", session_id)
    assert "file     a.md\nasked    Good: Is it good?\n" in output


async def test_a_step_that_waits_for_a_reviewer_shows_its_files_too(reviewed, failed, waiting):
    await failed(reviewed, RunnerUnavailable("Claude is not logged in"), calls=1)
    assert (await waiting())["runner"]["files"] == ["a.md"]


async def test_a_step_with_many_files_and_criteria_shows_twenty_of_each(project, judge, served, waiting):
    criteria = {f"Part {number}": "Is it good?" for number in range(30)}
    declared = {"parts": {"type": "files", "description": "Parts", "required": True}}
    project.write_job(steps=[step("a", outputs=declared, reviews=[review(quality_criteria=criteria)])])
    paths = [f"part{number}.md" for number in range(30)]
    for path in paths:
        project.write(path)
    async with project.agent(served(judge(lambda _: NeedsWork("No.")), quality_gate_max_attempts=1)) as agent:
        await agent.start()
        await agent.refused("finished_step", outputs={"parts": paths})
    item = (await waiting())["failed-gate"]
    assert item["files"] == paths[:20]
    assert item["criteria"] == [f"Part {number}: Is it good?" for number in range(20)]


async def test_a_step_does_not_wait_while_its_last_attempt_is_reviewed(reviewed, judge, served, waiting):
    runner = judge(lambda _: NeedsWork("Too short."))
    async with reviewed.agent(served(runner)) as agent, anyio.create_task_group() as tasks:
        await agent.start()
        for _ in range(2):
            await agent.finish(DONE)
        runner.hold, runner.asked = True, anyio.Event()
        reviewed.write("a.md", "Other work\n")

        async def last():
            await agent.refused("finished_step", outputs=DONE)

        tasks.start_soon(last)
        await runner.asked.wait()
        assert await waiting() == {}
        runner.release.set()
    assert list(await waiting()) == ["failed-gate"]


@pytest.mark.parametrize(("limit", "waits"), [(2, True), (5, False)])
async def test_the_limit_of_the_server_counts_for_everybody_who_looks(
    reviewed, judge, served, waiting, deepwork, limit, waits
):
    async with reviewed.agent(served(judge(lambda _: NeedsWork("No.")), quality_gate_max_attempts=limit)) as agent:
        await agent.start()
        for number in (1, 2):
            reviewed.write("a.md", f"version {number}")
            await (agent.refused if number == limit else agent.call)("finished_step", outputs=DONE)
        reviewed.write("a.md", "version 3")
        if limit == 5:
            await agent.finish(DONE)
    [session] = json.loads(await deepwork("status", "--json"))["sessions"]
    listed = await deepwork("sessions", "list")
    assert ("failed-gate" in await waiting(), session["waits_for_person"]) == (waits, waits)
    assert ("waits for a person" in listed) is waits


async def test_a_session_waits_as_soon_as_one_member_of_its_group_does(project, judge, served, waiting, deepwork):
    project.write_job(steps=[step("a"), step("b", reviews=[review()])], workflows={"main": [["a", "b"]]})
    project.write("b.md")
    async with project.agent(served(judge(lambda _: NeedsWork("No.")), quality_gate_max_attempts=1)) as agent:
        first_step = await agent.start()
        report = {"session_id": first_step["session_id"], "step_id": "b", "outputs": {"b.md": "b.md"}}
        await agent.refused("finished_step", **report)
    assert (await waiting())["failed-gate"]["reference"]["step_id"] == "b"
    assert json.loads(await deepwork("status", "--json"))["sessions"][0]["waits_for_person"] is True


async def test_a_new_failure_of_the_same_step_is_a_new_state(reviewed, judge, served, waiting):
    async with reviewed.agent(served(judge(lambda _: NeedsWork("Too short.")))) as agent:
        await agent.start()
        for _ in range(2):
            await agent.finish(DONE)
        await agent.refused("finished_step", outputs=DONE)
        first = (await waiting())["failed-gate"]
        reviewed.write("a.md", "Other work\n")
        await agent.refused("finished_step", outputs=DONE)
    second = (await waiting())["failed-gate"]
    assert (first["id"], second["what"]) == (second["id"], "demo/main: step 'a' needs work after 4 reviews")
    assert first["state"] != second["state"]


async def test_a_step_waits_when_reviewers_gave_no_verdict_three_times(reviewed, failed, waiting):
    await failed(reviewed, RunnerError("the model is overloaded"))
    item = (await waiting())["no-verdict"]
    assert item["what"] == "demo/main: step 'a' was not judged in 3 calls"
    assert "the model is overloaded" in item["detail"]


async def test_a_step_waits_at_once_for_a_reviewer_that_only_the_user_can_fix(reviewed, failed, waiting):
    await failed(reviewed, RunnerUnavailable("Claude is not logged in"), calls=1)
    item = (await waiting())["runner"]
    assert "Claude is not logged in" in item["detail"]


async def test_an_override_that_a_strict_gate_asks_a_person_for_waits(
    reviewed, judge, served, user_config, waiting, history
):
    user_config("quality_gate: {strict: true}\n")
    async with reviewed.agent(served(judge(lambda _: Passed()))) as agent:
        await agent.start()
        for _ in range(2):  # asking again makes no second request
            await agent.refused("finished_step", outputs=DONE, quality_review_override_reason="It is only a draft")
        assert history("override_asked") == [{"reason": "It is only a draft", "files": ["a.md"]}]
        items = await waiting()
        assert items["override"]["files"] == ["a.md"]
        assert items["override"]["what"] == "demo/main: step 'a' asks to pass without a review"
        assert "It is only a draft" in items["override"]["detail"]
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert "override" not in await waiting()


async def test_a_damaged_session_waits(project, waiting, deepwork):
    project.write_job()
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
    project.write(f".deepwork/tmp/session_{session_id}.json", "{")
    item = (await waiting())["damaged-session"]
    assert session_id in item["what"]
    assert item["since"].startswith("20")


async def test_a_reviewer_whose_program_is_missing_waits_for_the_user(project, user_config, waiting):
    user_config("quality_gate: {runner: mine, commands: {mine: {run: [no-such-reviewer]}}}\n")
    item = (await waiting())["reviewer"]
    assert "no-such-reviewer" in item["what"]
    assert item["actions"] == []


async def test_settings_that_wait_for_trust_wait_for_the_user(project, waiting):
    project.write(".deepwork/config.yml", "allowed_output_roots: [/srv/reports]\n")
    item = (await waiting())["trust"]
    assert "allowed_output_roots" in item["detail"]
