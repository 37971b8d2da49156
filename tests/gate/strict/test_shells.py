"""What an agent may try at a strict gate with a shell and all rights of the same user.

Edits of a stored session are refused. What gets through is seen afterwards.
"""

from __future__ import annotations

import json

import anyio
import pytest

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


def without_reviews(session):
    """Take every review out of a session, as a careless agent with a shell would."""
    steps = session["definition"]["steps"].values()
    session["definition"]["steps"] = {item["id"]: {**item, "reviews": []} for item in steps}
    return json.dumps(session)


async def test_cheat_21_reviews_that_are_taken_out_of_the_session_file(
    reviewed, judge, is_good, served, stored, deepwork
):
    async with reviewed.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        session_id = begin["session_id"]
        assert (await agent.finish(DONE))["status"] == "needs_work"
        file = reviewed.state / f"session_{session_id}.json"
        file.write_text(without_reviews(stored()))
        refusals = [await agent.refused("finished_step", outputs=DONE)]
        async with reviewed.agent(served(judge(is_good))) as second_agent:
            for outputs, more in ((DONE, {}), ({}, {"step_id": "?"})):
                refusals.append(
                    await second_agent.refused("finished_step", outputs=outputs, session_id=session_id, **more)
                )
        for refusal in refusals:
            assert "its workflow, steps or reviews are not those with which it was started" in refusal
            assert f"deepwork sessions reopen {session_id} a --reason TEXT --accept-definition" in refusal
        edited = stored()
        assert "edited" in await deepwork("sessions", "show", session_id)
        for command in (["undo", session_id], ["reopen", session_id, "a"]):
            assert "was edited" in await deepwork("sessions", *command, "--reason", "r", code=1)
        assert stored() == edited
        report = json.loads(await deepwork("sessions", "verify", session_id, "--json", code=1))
        assert report["verified"] is False
        await agent.call("abort_workflow", explanation="It was edited.")
    assert stored()["status"] == "aborted"


async def test_cheat_22_reviews_that_are_taken_out_while_one_runs(reviewed, judge, is_good, served, stored, steps_done):
    runner = judge(is_good)
    runner.hold = True
    reviewed.write("a.md", "GOOD\n")
    async with reviewed.agent(served(runner)) as agent, anyio.create_task_group() as tasks:
        begin = await agent.start()

        async def report():
            assert "was edited" in await agent.refused("finished_step", outputs=DONE)

        tasks.start_soon(report)
        await runner.asked.wait()
        session = stored()
        session["revision"] += 1
        (reviewed.state / f"session_{begin['session_id']}.json").write_text(without_reviews(session))
        runner.release.set()
    assert steps_done() == []


# A shell of the same user may do what the user may. These get through, and this is what is seen of them.


async def test_shell_1_an_override_at_a_terminal_that_a_program_has_opened_names_the_programs(
    reviewed, judge, is_good, served, history, in_terminal
):
    async with reviewed.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        words = ["sessions", "override", begin["session_id"], "a", "--reason", "fine"]
        await anyio.to_thread.run_sync(in_terminal, reviewed.root, *words)
    assert any("pytest" in name or "python" in name for name in history("override")[0]["process"])


async def test_shell_2_an_edited_file_after_its_pass_is_named_by_verify(reviewed, judge, is_good, served, deepwork):
    reviewed.write("a.md", "GOOD\n")
    async with reviewed.agent(served(judge(is_good))) as agent:
        await agent.start()
        await agent.finish(DONE)
        await agent.finish({"b.md": "b.md"})
    assert json.loads(await deepwork("sessions", "verify", "--json"))["verified"] is True
    reviewed.write("a.md", "bad\n")
    report = json.loads(await deepwork("sessions", "verify", "--json", code=1))
    [gate, _] = report["sessions"][0]["gates"]
    assert (gate["judges"], gate["exceptions"]) == ([], ["a.md: has changed since it was judged"])


async def test_reviews_that_are_taken_out_of_a_finished_session_are_missed_by_verify(
    reviewed, judge, is_good, served, stored, deepwork
):
    reviewed.write("a.md", "GOOD\n")
    async with reviewed.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        await agent.finish(DONE)
        await agent.finish({"b.md": "b.md"})
    (reviewed.state / f"session_{begin['session_id']}.json").write_text(without_reviews(stored()))
    report = json.loads(await deepwork("sessions", "verify", "--json", code=1))
    [exceptions] = [gate["exceptions"] for gate in report["sessions"][0]["gates"] if gate["exceptions"]]
    assert exceptions == ["its stored workflow, steps or reviews are not those with which it was started"]


async def test_shell_3_a_forged_pass_in_the_session_file_is_named_by_verify_unless_its_digests_are_forged_too(
    reviewed, judge, is_good, served, deepwork
):
    async with reviewed.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        await agent.finish(DONE)
    file = reviewed.state / f"session_{begin['session_id']}.json"
    session = json.loads(file.read_text())
    verdict = next(entry for entry in session["history"] if entry["kind"] == "verdict")
    verdict["detail"] |= {"passed": True, "key": "0" * 64}
    completed = {"at": verdict["at"], "kind": "step_completed", "step_id": "a", "detail": {"outputs": DONE}}
    session["history"].append(completed)
    session["step_progress"]["a"] |= {"outputs": DONE, "completed_at": verdict["at"]}
    session |= {"status": "completed"}
    file.write_text(json.dumps(session, indent=2))
    report = json.loads(await deepwork("sessions", "verify", begin["session_id"], "--json", code=1))
    assert report["sessions"][0]["gates"][0]["exceptions"] == [
        "step: its files, inputs, criteria or notes are not those that judge judged"
    ]


async def test_a_person_at_a_terminal_goes_on_with_an_edited_session(
    reviewed, judge, is_good, served, stored, history, deepwork, in_terminal
):
    async with reviewed.agent(served(judge(is_good))) as agent:
        begin = await agent.start()
        file = reviewed.state / f"session_{begin['session_id']}.json"
        edited = stored()
        edited["definition"]["steps"]["a"]["reviews"][0]["quality_criteria"] = {"Better": "Is it better?"}
        file.write_text(json.dumps(edited))
        words = ["sessions", "reopen", begin["session_id"], "a", "--reason", "I did it", "--accept-definition"]
        assert "Only a person may go on with a definition that was edited" in await deepwork(*words, code=1)
        assert stored() == edited
        output, code = await anyio.to_thread.run_sync(in_terminal, reviewed.root, *words)
        assert (code, "reopened" in output) == (0, True)
        reviewed.write("a.md", "GOOD\n")
        await agent.finish(DONE)
        assert (await agent.finish({"b.md": "b.md"}))["status"] == "workflow_complete"
    accepted, _reason = history("note")
    assert accepted["by"] == "person"
    assert accepted["terminal"].startswith("/dev/")
    assert [verdict["asked"] for verdict in history("verdict")] == [["Better"]]
    assert json.loads(await deepwork("sessions", "verify", "--json"))["verified"] is True
