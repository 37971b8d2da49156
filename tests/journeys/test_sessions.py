"""The file of a session, and files that release 0.9 has left."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

FIELDS = {
    "session_id",
    "job_name",
    "workflow_name",
    "instance_id",
    "goal",
    "current_step_id",
    "current_entry_index",
    "step_progress",
    "started_at",
    "completed_at",
    "status",
    "abort_reason",
}
STEP_FIELDS = {"step_id", "started_at", "completed_at", "outputs", "notes", "quality_attempts"}


def done(name):
    return {f"{name}.md": f"{name}.md"}


async def test_a_session_is_a_file_that_a_person_can_read(project):
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        begin = await agent.start(workflow="whatever", instance_id="q1 für alle")
        await agent.finish(done("a"), notes="Größe?")
    text = (project.state / f"session_{begin['session_id']}.json").read_text()
    session = json.loads(text)
    assert session.keys() >= FIELDS
    assert session["step_progress"]["a"].keys() >= STEP_FIELDS
    assert text.startswith('{\n  "')
    assert "Größe?" in text
    assert (session["job_name"], session["workflow_name"]) == ("demo", "main")
    assert (session["status"], session["current_step_id"], session["current_entry_index"]) == ("active", "b", 1)
    assert session["instance_id"] == "q1 für alle"


async def test_times_are_utc_with_offset_and_microseconds(project, stored):
    project.write_job()
    async with project.agent() as agent:
        begin = await agent.start()
    started = stored(begin["session_id"])["started_at"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", started)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(started)) < timedelta(minutes=1)


async def test_ids_have_at_least_122_random_bits(project):
    project.write_job()
    async with project.agent() as agent:
        ids = [(await agent.start())["session_id"] for _ in range(20)]
    assert len(set(ids)) == 20
    assert all(re.fullmatch("[0-9a-f]{32}", session_id) for session_id in ids)


async def test_only_the_user_can_read_what_is_stored(project):
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        await agent.finish(done("a"))
    assert project.state.stat().st_mode & 0o777 == 0o700
    files = [*project.state.glob("session_*"), *project.state.glob("quality_review_*")]
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]
    assert (project.state / ".gitignore").read_text() == "*\n"


async def test_the_file_of_a_completed_session_stays(project, stored):
    project.write_job()
    project.write("a.md")
    project.write("b.md")
    async with project.agent() as agent:
        begin = await agent.start()
        await agent.finish(done("a"))
        await agent.finish(done("b"))
    session = stored(begin["session_id"])
    assert session["status"] == "completed"
    assert session["completed_at"]


# Files of release 0.9 --------------------------------------------------------------------------------------------


def step_of_old(name, *, outputs=None):
    return {
        "step_id": name,
        "started_at": "2026-02-01T10:00:00.000001+00:00",
        "completed_at": "2026-02-01T11:00:00.000001+00:00" if outputs else None,
        "outputs": outputs or {},
        "notes": None,
        "quality_attempts": 0,
    }


OLD = {
    "session_id": "ab12cd34",
    "job_name": "demo",
    "workflow_name": "main",
    "instance_id": None,
    "goal": "an old goal",
    "current_step_id": "b",
    "current_entry_index": 1,
    "step_progress": {"a": step_of_old("a", outputs=done("a")), "b": step_of_old("b")},
    "started_at": "2026-02-01T10:00:00.000001+00:00",
    "completed_at": None,
    "status": "active",
    "abort_reason": None,
}


@pytest.fixture
def old(project):
    """A job of three steps, the files of all, and a function that leaves a session of release 0.9."""
    inputs = [{"file": "a.md", "from_step": "a"}]
    project.write_job(steps=[step("a"), step("b", inputs=inputs, dependencies=["a"]), step("c")])
    for name in "abc":
        project.write(f"{name}.md")

    def leave(**changes):
        project.write(".deepwork/tmp/session_ab12cd34.json", json.dumps({**OLD, **changes}, indent=2))

    return leave


@pytest.mark.parametrize("more", [{}, {"branch_name": "deepwork/demo-main-20260201"}])
async def test_a_session_of_release_0_9_goes_on_by_its_id(old, project, mode, stored, more):
    old(**more)
    async with project.agent(mode=mode) as agent:
        reply = await agent.finish(done("b"), session_id="ab12cd34")
        assert reply["begin_step"]["step_id"] == "c"
        assert "branch_name" not in reply["begin_step"]  # it is told with the first step only
        assert reply["stack"] == [{"workflow": "demo/main", "step": "c"}]
        reply = await agent.finish(done("c"))
    assert reply["all_outputs"] == done("a") | done("b") | done("c")
    session = stored("ab12cd34")
    assert session["branch_name"] == more.get("branch_name")
    assert session.keys() >= FIELDS | {"schema_version", "revision", "history", "parents"}
    assert session["started_at"] == OLD["started_at"]
    assert session["step_progress"]["a"]["outputs"] == done("a")


async def test_a_session_of_release_0_9_is_offered_and_tells_where_it_is(old, project):
    old()
    async with project.agent() as agent:
        text = await agent.refused("finished_step", outputs={})
        assert 'finished_step(session_id="ab12cd34", step_id="?"' in text
        reply = await agent.finish({}, session_id="ab12cd34", step_id="?")
    assert "an old goal" in reply["feedback"]
    assert reply["begin_step"]["step_instructions"] == "Instructions for b\n"
    assert reply["begin_step"]["step_inputs"] == [{"name": "a.md", "from_step": "a", "path": "a.md"}]


async def test_a_session_of_release_0_9_can_be_aborted_though_its_job_is_gone(old, project, stored):
    old(job_name="gone")
    async with project.agent() as agent:
        reply = await agent.call("abort_workflow", explanation="Old", session_id="ab12cd34")
    assert (reply["aborted_workflow"], reply["aborted_step"]) == ("gone/main", "b")
    assert stored("ab12cd34")["status"] == "aborted"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"current_step_id": "c"}, "stands at step 'c', entry 2 of workflow 'main', where now is 'b'"),
        ({"current_entry_index": 9}, "stands at step 'b', entry 10 of workflow 'main', where now is 'nothing'"),
        ({"job_name": "gone"}, "Job not found: 'gone'"),
    ],
)
async def test_a_session_of_release_0_9_whose_job_differs_says_how_and_offers_to_abort(
    old, project, stored, changes, words
):
    old(**changes)
    async with project.agent() as agent:
        text = await agent.refused("finished_step", outputs=done("b"), session_id="ab12cd34")
    assert words in text
    assert "abort_workflow" in text
    assert stored("ab12cd34") == {**OLD, **changes}


async def test_a_completed_session_of_release_0_9_is_over(old, project):
    old(status="completed", completed_at="2026-02-01T12:00:00.000001+00:00")
    async with project.agent() as agent:
        text = await agent.refused("finished_step", outputs=done("b"), session_id="ab12cd34")
    assert "Session 'ab12cd34' of demo/main is over: completed" in text
