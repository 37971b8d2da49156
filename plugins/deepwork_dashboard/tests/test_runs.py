"""Who works on a session, what it has cost and waits for, and the buttons of people; agents are played by programs."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from deepwork.testing.wire import PATIENCE

FAKE = Path(__file__).parents[2] / "deepwork_run" / "tests" / "fake_cli.py"

pytestmark = pytest.mark.anyio


class Played:
    """Programs that play those of two vendors, and a project on which they work."""

    def __init__(self, project, folder):
        self.project, self.folder = project, folder
        folder.mkdir()
        for name in ("claude", "codex"):
            (folder / name).write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
            (folder / name).chmod(0o755)
        project.env["PATH"] = f"{folder}{os.pathsep}{project.env['PATH']}"

    def plan(self, **acts):
        (self.folder / "plan.json").write_text(json.dumps(acts))

    def run(self, *words):
        """Run the job with Claude, and return the exit code and the id of its session."""
        process = self.project.run("run", "plain", "--goal", "a goal", "--with", "claude", "--no-wait", *words)
        [file] = self.project.state.glob("session_*.json")
        return process.returncode, json.loads(file.read_text())["session_id"]


@pytest.fixture
def played(project, tmp_path):
    return Played(project, tmp_path / "programs")


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


@pytest.mark.slow
def test_a_person_has_another_agent_go_on_after_a_limit(project, played):
    played.plan(claude=[{"steps": 1, "then": "limit", "for": 3600, "cost": 0.25}], codex=[{"steps": 1, "then": "end"}])
    code, session_id = played.run()
    assert code == 7
    with project.dashboard() as dash:
        path = f"api/sessions/{session_id}"
        session = dash.get(path)
        assert session["limit"]["cause"] == "usage limit of claude"
        run = session["run"]
        assert (run["state"], run["agent"], run["cost_usd"]) == ("ended", "claude", 0.25)
        assert run["last_end"].startswith("usage limit: ")
        assert run["can_continue_with"] == ["claude", "codex"]
        assert [(step["id"], step["agent"]) for step in session["steps"]] == [("a", "claude"), ("b", None)]
        [row] = dash.get("api/sessions")["items"]
        assert (row["limit"], row["run"]["agent"]) == (session["limit"], "claude")
        [item] = [item for item in dash.get("api/inbox")["items"] if item["kind"] == "limit"]
        assert item["thing"] == session["thing"]

        body = {"action": "continue", "agent": "codex"}
        assert dash.ask(f"{path}/run", "POST", body=body).status == 403, "a program is no person"
        _, page = dash.log_in()
        answer = dash.ask(f"{path}/run", "POST", body=body, **page)
        assert (answer.status, answer.json()["done"]) in (
            (200, f"An agent goes on with session {session_id}"),
            (200, f"Session {session_id} is complete"),
        )
        until(lambda: dash.get(path)["status"] == "completed")
        assert [step["agent"] for step in dash.get(path)["steps"]] == ["claude", "codex"]
        by = [(entry["kind"], entry["by"]) for entry in dash.get(f"{path}/history")["items"] if entry["by"]]
        assert by == [("step_completed", "codex"), ("waiting", "claude"), ("step_completed", "claude")]
        over = dash.ask(f"{path}/run", "POST", body=body, **page)
        assert (over.status, "completed" in over.text) == (409, True)


async def test_a_person_stops_the_agent_that_works_and_pages_are_told(project, played, listen):
    played.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}], codex=[{"steps": 0, "then": "hang"}])
    _, session_id = played.run()
    with project.dashboard() as dash:
        path = f"api/sessions/{session_id}"
        _, page = dash.log_in()
        async with dash.live() as socket:
            await listen(socket, "inbox")
            answer = dash.ask(f"{path}/run", "POST", body={"action": "continue", "agent": "codex"}, **page)
            assert answer.json() == {"done": f"An agent goes on with session {session_id}"}
            until(lambda: dash.get(path)["run"]["state"] == "running")
            await listen(socket, f"session:{session_id}")
        run = dash.get(path)["run"]
        assert (run["agent"], run["since"] is not None, run["exit_code"]) == ("codex", True, None)
        assert [(agent["name"], agent["starts"]) for agent in run["agents"]] == [("claude", 1), ("codex", 1)]
        assert dash.ask(f"{path}/run", "POST", body={"action": "stop"}).status == 403
        assert dash.ask(f"{path}/run", "POST", body={"action": "stop"}, **page).status == 200
        until(lambda: dash.get(path)["run"]["state"] == "ended")
        assert dash.get(path)["run"]["exit_code"] == 130
        again = dash.ask(f"{path}/run", "POST", body={"action": "stop"}, **page)
        assert (again.status, "Nobody runs" in again.text) == (409, True)


@pytest.mark.slow
def test_a_run_goes_on_when_the_dashboard_that_started_it_ends(project, played):
    codex = [{"steps": 1, "then": "end", "until": str(played.folder)}]
    played.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}], codex=codex)
    _, session_id = played.run()
    with project.dashboard() as dash:
        _, page = dash.log_in()
        body = {"action": "continue", "agent": "codex"}
        assert dash.ask(f"api/sessions/{session_id}/run", "POST", body=body, **page).status == 200
    (played.folder / "b").touch()
    [file] = project.state.glob("session_*.json")
    until(lambda: json.loads(file.read_text())["status"] == "completed")


def test_why_an_agent_cannot_go_on_is_told_and_wrong_requests_start_nothing(project, played):
    played.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}], codex=[{"steps": 1, "then": "end"}])
    _, session_id = played.run()
    with project.dashboard() as dash:
        _, page = dash.log_in()
        path = f"api/sessions/{session_id}/run"
        assert "codex" in dash.get(f"api/sessions/{session_id}")["run"]["can_continue_with"]
        (played.folder / "codex").unlink()
        answer = dash.ask(path, "POST", body={"action": "continue", "agent": "codex"}, **page)
        assert answer.status == 409
        assert "'codex' cannot be started" in answer.json()["error"]["message"]
        for body in ({}, [], {"action": "dance"}, {"action": "continue", "agent": "scripted"}, {"action": 1}):
            assert dash.ask(path, "POST", body=body, **page).status == 400, body
        assert dash.ask("api/sessions/nothing/run", "POST", body={"action": "stop"}, **page).status == 404
    assert len((played.folder / "seen.jsonl").read_text().splitlines()) == 1


def test_a_record_that_cannot_be_read_hides_no_session(project, played):
    played.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    _, session_id = played.run()
    events = project.state / "runs" / session_id / "events.jsonl"
    events.unlink()
    events.mkdir()
    with project.dashboard() as dash:
        assert dash.get(f"api/sessions/{session_id}")["run"] is None
        assert [row["run"] for row in dash.get("api/sessions")["items"]] == [None]
    listing = project.run("runs")
    assert (listing.returncode, "cannot be read" in listing.stderr, "Traceback" in listing.stderr) == (1, True, False)


def test_the_sessions_of_others_have_no_run(project, played, tokens):
    played.plan(claude=[{"steps": 1, "then": "limit", "for": 3600}])
    _, session_id = played.run()
    with project.dashboard(
        "--token-file", tokens("local one-token-for-tests person\nbob bobs-token-for-tests person\n")
    ) as dash:
        _, page = dash.log_in("bobs-token-for-tests")
        body = {"action": "continue", "agent": "claude"}
        assert dash.ask(f"api/sessions/{session_id}/run", "POST", body=body, **page).status == 404
        assert session_id not in dash.ask("api/inbox", token="bobs-token-for-tests").text
