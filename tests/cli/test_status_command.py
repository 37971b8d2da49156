"""`deepwork status`: what is open, for people, programs and status lines."""

from __future__ import annotations

import json

import pytest

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
