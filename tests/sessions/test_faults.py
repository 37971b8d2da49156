"""Files of other releases, leftovers, clocks that jump, and processes that are stopped while they hold a lock."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from deepwork.api import Engine, ToolCall
from deepwork.engine.reports import Report
from deepwork.models.sessions import PinnedDefinition
from deepwork.project.project import Project
from deepwork.sessions.manager import StateManager

pytestmark = pytest.mark.anyio

HOUR = 3600


@pytest.fixture
def edit(project):
    """Change the file of a session by hand."""

    def change(session_id, **fields):
        file = project.state / f"session_{session_id}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}, indent=2) + "\n")
        return file

    return change


async def test_a_session_of_a_newer_release_is_refused_by_name_and_left_as_it_is(demo, edit):
    async with demo.agent() as agent:
        session_id = (await agent.start())["session_id"]
        file = edit(session_id, schema_version=7)
        before = file.read_bytes()
        call = {"session_id": session_id, "step_id": "a"}
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, **call)
    assert "was written by a newer release (schema_version 7; this one knows 1)" in text
    assert file.read_bytes() == before


async def test_a_session_of_a_newer_release_is_left_alone_though_it_makes_no_sense_here(demo, edit):
    async with demo.agent() as agent:
        session_id = (await agent.start())["session_id"]
        file = edit(session_id, schema_version=7, status="paused", step_progress=[1, 2], started_at=None)
        text = await agent.refused("finished_step", outputs={}, session_id=session_id, step_id="?")
        assert "was written by a newer release" in text
        sound_session = (await agent.start())["session_id"]
    async with demo.agent() as agent:
        assert f"- {sound_session}" in await agent.refused("finished_step", outputs={})
    assert file.exists()
    assert not list(demo.state.glob("*.corrupt"))


async def test_fields_of_a_newer_release_survive_a_load_and_save(project, stored):
    from deepwork.testing import step

    inputs = [{"name": "topic", "description": "What about"}]
    project.write_job(steps=[step("a", inputs=inputs), step("b")])
    project.write("a.md")
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        session = stored(session_id)
        definition = session["definition"]
        newer = [
            session,
            session["history"][0],
            session["step_progress"]["a"],
            session["step_progress"]["a"]["begun"],
            session["step_progress"]["a"]["begun"]["inputs"][0],
            definition,
            definition["workflow"],
            definition["steps"]["b"],
            definition["steps"]["b"]["outputs"]["b.md"],
            definition["steps"]["a"]["inputs"][0],
        ]
        for number, part in enumerate(newer):
            part["newer"] = {"kept": number}
        written = PinnedDefinition.model_validate_json(json.dumps(definition), extra="allow")
        definition["content_digest"] = written.stored_digest
        (project.state / f"session_{session_id}.json").write_text(json.dumps(session))
        await agent.finish({"a.md": "a.md"}, session_id=session_id, step_id="a")
    after = stored(session_id)
    steps = after["definition"]["steps"]
    parts = [
        after,
        after["history"][0],
        after["step_progress"]["a"],
        after["step_progress"]["a"]["begun"],
        after["step_progress"]["a"]["begun"]["inputs"][0],
        after["definition"],
        after["definition"]["workflow"],
        steps["b"],
        steps["b"]["outputs"]["b.md"],
        steps["a"]["inputs"][0],
    ]
    assert after["current_step_id"] == "b"
    assert [part.get("newer") for part in parts] == [{"kept": number} for number in range(len(newer))]


async def test_a_leftover_of_a_cut_off_write_is_removed_after_an_hour(demo):
    async with demo.agent() as agent:
        session_id = (await agent.start())["session_id"]
    old = demo.state / f".session_{session_id}.json.0123456789abcdef.tmp"
    young = demo.state / ".session_other.json.0123456789abcdef.tmp"
    for leftover, age in ((old, HOUR + 60), (young, HOUR - 60)):
        leftover.write_text('{"half":')
        os.utime(leftover, (time.time() - age, time.time() - age))
    async with demo.agent() as agent:
        await agent.finish({"a.md": "a.md"}, session_id=session_id, step_id="a")
    assert not old.exists()
    assert young.exists()


async def test_a_leftover_of_a_cut_off_write_is_no_session_and_no_damage(demo):
    async with demo.agent() as agent:
        await agent.start()
    (demo.state / ".session_other.json.0123456789abcdef.tmp").write_text('{"half":')
    async with demo.agent() as agent:
        text = await agent.refused("finished_step", outputs={})
    assert text.count("\n- ") == 1
    assert "damaged" not in text.lower()


def jumping(moments):
    """Make a clock that shows one moment after the other, and then stays."""
    remaining = [*moments]
    return lambda: remaining.pop(0) if len(remaining) > 1 else remaining[0]


NOON = datetime(2026, 10, 25, 12, tzinfo=UTC)
SUMMER, WINTER = timezone(timedelta(hours=2)), timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param([NOON, NOON - timedelta(days=400), NOON + timedelta(days=9)], id="set back and forward"),
        pytest.param([NOON], id="standing still"),
        pytest.param(
            [datetime(2026, 10, 25, 2, 59, tzinfo=SUMMER), datetime(2026, 10, 25, 2, 1, tzinfo=WINTER)],
            id="end of summer time",
        ),
    ],
)
async def test_a_history_keeps_its_order_whatever_the_clock_shows(demo, events, moments):
    house = Project(demo.root)
    sessions = StateManager(house.store(), house.workspace, clock=jumping(moments))
    engine = Engine(catalogue=house.catalogue, sessions=sessions, gate=None)
    call = ToolCall()
    started = await engine.start(call, goal="g", job_name="demo", workflow_name="main")
    session_id = started.begin_step.session_id
    await engine.finish_step(call, Report({"a.md": "a.md"}, session_id=session_id, step_id="a"))
    repeat = await engine.finish_step(call, Report({"a.md": "a.md"}, session_id=session_id, step_id="a"))
    assert repeat.begin_step.step_id == "b"
    await engine.finish_step(call, Report({"b.md": "b.md"}))
    assert events(session_id) == [
        ("started", None),
        ("step_begun", "a"),
        ("step_completed", "a"),
        ("step_begun", "b"),
        ("step_completed", "b"),
        ("completed", None),
    ]
    assert (await engine.resume_text(call, session_id)).startswith(f"Session {session_id!r} of demo/main is over")


async def test_a_session_from_the_future_has_an_age_all_the_same(demo, edit):
    async with demo.agent() as agent:
        session_id = (await agent.start())["session_id"]
    edit(session_id, updated_at="2999-01-01T00:00:00.000000+00:00")
    async with demo.agent() as agent:
        assert "step 'a', 0 s ago" in await agent.refused("finished_step", outputs={})


@pytest.mark.parametrize("moment", ["yesterday", "2026-01-01T00:00:00"])
async def test_a_time_that_an_older_release_wrote_differently_hides_no_session(demo, edit, moment):
    async with demo.agent() as agent:
        session_id = (await agent.start())["session_id"]
    edit(session_id, updated_at=moment)
    async with demo.agent() as agent:
        assert f"- {session_id}" in await agent.refused("finished_step", outputs={})


HOLD_ALL_LOCKS = """
import os, sys
from deepwork.api import Folder
folder = Folder(os.open(sys.argv[1], os.O_RDONLY))
held = [folder.locked(f"sessions.{number}.lock", subject="the folder") for number in range(16)]
for lock in held:
    lock.__enter__()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def stopped_holder(demo):
    """Stop a process while it holds every lock of the project."""
    demo.state.mkdir(mode=0o700)
    command = [sys.executable, "-c", HOLD_ALL_LOCKS, str(demo.state)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    os.kill(holder.pid, signal.SIGSTOP)
    yield holder
    holder.kill()
    holder.communicate()


async def test_a_stopped_lock_holder_makes_calls_fail_clearly_within_5_s_until_it_dies(demo, stopped_holder):
    async with demo.agent() as agent:
        text = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
        assert "another process has held the lock of the session folder for 4 s; nothing was changed" in text
        assert "suspended deepwork process" in text
        assert not list(demo.state.glob("session_*"))
        stopped_holder.kill()
        stopped_holder.wait()
        assert (await agent.start())["step_id"] == "a"
