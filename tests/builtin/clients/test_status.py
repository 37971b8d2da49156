"""`deepwork status`: what is open, for people, programs and status lines."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from deepwork.api import NeedsWork, Passed
from deepwork.errors import RunnerError, RunnerLimited
from deepwork.paths.user_folders import user_config_file

pytestmark = pytest.mark.anyio


async def test_what_is_open_is_shown_with_step_position_and_goal(project, run):
    project.write_job("notes")
    assert (run("status").stdout, run("status").stderr) == ("", "Nothing is open.\n")
    assert run("status", "--statusline").stdout == ""
    async with project.agent() as agent:
        first = await agent.start("notes")
        second = await agent.start("notes")
    sessions = json.loads(run("status", "--json").stdout)["sessions"]
    assert [session["session_id"] for session in sessions] == [second["session_id"], first["session_id"]]
    assert sessions[0]["position"].startswith("step 1 of ")
    assert sessions[0]["waits_for_person"] is False
    line = run("status", "--statusline").stdout
    assert line == f"notes/main @ {second['step_id']} +1\n"
    assert run("status").stdout.startswith(f"{second['session_id']}  notes/main at {second['step_id']} (step 1 of")


async def test_a_session_that_no_agent_has_called_for_says_so(project, run):
    project.write_job("notes")
    async with project.agent() as agent:
        first_step = await agent.start("notes")
    file = project.state / f"session_{first_step['session_id']}.json"
    session = json.loads(file.read_text())
    [session_shown] = json.loads(run("status", "--json").stdout)["sessions"]
    assert session_shown["last_call_at"] == session["history"][-1]["at"]
    assert "no agent" not in run("status").stdout + run("sessions", "list").stdout
    called_at = (datetime.now(UTC) - timedelta(minutes=14, seconds=1)).isoformat()
    calls = [{**entry, "at": called_at} for entry in session["history"]]
    # An answer of a person is not an agent's call.
    answer = {"at": datetime.now(UTC).isoformat(), "kind": "override", "step_id": first_step["step_id"]}
    calls.append({**answer, "detail": {"by": "person", "reason": "fine"}})
    file.write_text(json.dumps({**session, "history": calls, "standing": None}, indent=2) + "\n")
    assert "(step 1 of 2)  no agent since 14 min: " in run("status").stdout
    assert "step 1 of 2  no agent since 14 min: " in run("sessions", "list").stdout
    assert "(no agent since 14 min)" in run("status", "--statusline").stdout


@pytest.mark.parametrize("config", ["nonsense: 1\n", "tools: [\n"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_broken_configuration_is_an_error(project, invoke, config, options):
    file = project.write(".deepwork/config.yml", config)
    result = invoke("status", *options)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"Error: {file}:")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NeedsWork("No"), "needs work"),
        (RunnerError("away"), "not judged"),
        (
            RunnerLimited("enough", until=datetime(2030, 1, 2, 15, 4, tzinfo=UTC)),
            "not judged: limited until 2030-01-02 15:04 UTC",
        ),
    ],
)
async def test_the_states_of_a_review_look_different(reviewed, judge, served, run, answer, words):
    answers = [answer]
    async with reviewed.agent(served(judge(lambda _: answers[0]))) as agent:
        await agent.start()
        assert run("status", "--statusline").stdout == "demo/main @ a\n"
        await agent.finish({"a.md": "a.md"})
        assert run("status", "--statusline").stdout == f"demo/main @ a ({words})\n"
        [session] = json.loads(run("status", "--json").stdout)["sessions"]
        assert session["review"] == words
        answers[0] = Passed()
        reviewed.write("a.md", "Other work\n")
        await agent.finish({"a.md": "a.md"})
        assert run("status", "--statusline").stdout == "demo/main @ b\n"


async def test_what_passed_a_program_and_waits_for_a_person_has_not_passed(reviewed, run):
    commands = {"tests": {"run": ["true"], "verdict": "exit_code"}}
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    routes = [{"runner": ["tests", "person"]}]
    file.write_text(json.dumps({"quality_gate": {"commands": commands, "runners": routes}}))
    async with reviewed.agent() as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "needs_work"
        assert run("status", "--statusline").stdout == "demo/main @ a (waits for you)\n"
