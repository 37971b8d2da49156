"""Data of an earlier release opens, goes on and ends in this one: sessions in files, and the decisions of their user.

`tests/stored_state.py` makes a fixture of each release. The plugins test the data in its databases.
"""

from __future__ import annotations

import json
import os
import sys

import anyio
import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(old_state):
    """The project, for the fixtures that run commands in it."""
    return old_state.project


async def test_every_open_session_goes_on_to_its_end(old_state, deepwork):
    async with old_state.project.agent(external_runner="judge") as agent:
        for name in old_state.open_sessions("json"):
            assert (await old_state.finish(agent, "json", name))["status"] == "workflow_complete", name
    report = json.loads(await deepwork("sessions", "verify", "--json", code=1))
    verified = {item["session_id"] for item in report["sessions"] if item["verified"]}
    expected = {*old_state.sessions("json")} - old_state.unverified
    assert verified == {old_state.sessions("json")[name] for name in expected}


async def test_every_open_session_can_be_aborted(old_state):
    async with old_state.project.agent(external_runner="judge") as agent:
        for name, session_id in old_state.open_sessions("json").items():
            reply = await agent.call("abort_workflow", explanation="no longer needed", session_id=session_id)
            assert reply["aborted_workflow"].startswith("book/"), name


async def test_a_session_that_is_over_answers_as_it_did(old_state):
    async with old_state.project.agent(external_runner="judge") as agent:
        for name in ("completed", "reviewed by its agent", "gate off"):
            assert (await old_state.finish(agent, "json", name))["status"] == "workflow_complete", name


async def test_commands_show_every_session(old_state, deepwork):
    sessions = old_state.sessions("json")
    archived = json.loads(await deepwork("sessions", "list", "--archived", "--json"))["sessions"]
    assert [session["session_id"] for session in archived] == [sessions.pop("archived")]
    listed = json.loads(await deepwork("sessions", "list", "--all", "--json"))["sessions"]
    assert {session["session_id"] for session in listed} == {*sessions.values()}
    for name, session_id in sessions.items():
        facts = json.loads(await deepwork("sessions", "show", session_id, "--json"))
        assert (facts["session_id"], facts["status"] == "active") == (
            session_id,
            name in old_state.open_sessions("json"),
        )


async def test_a_session_of_a_later_release_is_refused_with_a_sentence_and_left_as_it_is(old_state, deepwork):
    session_id = old_state.sessions("json")["at the first step"]
    file = old_state.project.state / f"session_{session_id}.json"
    later = file.read_text().replace('"schema_version": 1,', '"schema_version": 99, "news": {},')
    file.write_text(later)
    async with old_state.project.agent(external_runner="judge") as agent:
        refusal = await agent.refused("finished_step", outputs={}, session_id=session_id)
        assert "was written by a newer release" in refusal
        assert refusal == await agent.refused("abort_workflow", explanation="e", session_id=session_id)
    for command in (["show", session_id], ["verify", session_id], ["abort", session_id, "--reason", "r"]):
        printed = await deepwork("sessions", *command, code=1)
        assert "was written by a newer release" in printed
        assert "Traceback" not in printed
    assert file.read_text() == later


async def test_what_waits_for_a_person_still_waits(old_state, deepwork):
    items = json.loads(await deepwork("inbox", "--json"))["items"]
    waiting = {item["reference"]["id"] for item in items if item["reference"]["kind"] == "session"}
    names = {name for name, session_id in old_state.sessions("json").items() if session_id in waiting}
    assert {"waits for a person", "asks a person"} <= names


async def test_what_the_user_has_trusted_stays_trusted(old_state, deepwork):
    assert "nothing that waits for approval" in await deepwork("trust", "--yes")


async def test_the_session_of_a_client_knows_its_workflow(old_state):
    event = {
        "session_id": old_state.cases["client session"],
        "cwd": str(old_state.project.root),
        "hook_event_name": "Stop",
    }
    command = [sys.executable, "-m", "deepwork", "hook", "Stop", "--client", "claude"]
    environment = {**os.environ, "DEEPWORK_HOOK_SECONDS": "60"}
    ended = await anyio.run_process(command, input=json.dumps(event).encode(), env=environment)
    assert old_state.sessions("json")["at the first step"] in json.loads(ended.stdout)["reason"]
