"""Where a session stands is the same for every reader, for any history and any standing in its file."""

from __future__ import annotations

import json
from functools import partial

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given

from deepwork.api import Session
from deepwork.builtin.json_store.heads import FileHeads
from deepwork.builtin.people.sessions import SessionInbox
from deepwork.models.standing import MAX_HEAD, MAX_TEXT, MAX_WAITS, read_head
from deepwork.project.heads import newest_heads
from deepwork.project.project import Project
from deepwork.sessions.manager import standing_in
from deepwork.sessions.standing import MAX_STANDING, standing_of, waiting_steps
from deepwork.testing import review, step
from deepwork.testing.strategies import continuations

AT = "2026-11-19T00:00:00.000000+00:00"
STEPS = ("first", "light", "dark", "deep")


@pytest.fixture
def group_session(project):
    """A session whose first step is done, and whose group of three is open."""
    steps = [step(name, reviews=[review()]) for name in STEPS]
    project.write_job(steps=steps, workflows={"main": [["first"], ["light", "dark", "deep"]]})
    project.write("first.md")

    async def begin():
        async with project.agent() as agent:
            await agent.start()
            await agent.finish({"first.md": "first.md"}, quality_review_override_reason="fine")

    anyio.run(begin)
    [file] = project.state.glob("session_*.json")
    return json.loads(file.read_text())


@pytest.fixture
def write(project):
    """Write the file of a session as a save does, with these keys at their places."""

    def write(data):
        file = project.state / f"session_{data['session_id']}.json"
        file.write_text(json.dumps(data, indent=2) + "\n")

    return write


def saying(data, standing):
    return {**data, "standing": standing}


def as_saved(data):
    standing = standing_of(Session.model_validate(data))
    return Session.model_validate(saying(data, standing)).model_dump(mode="json")


@pytest.fixture
def readings(project):
    """Ask everybody who shows where a session stands; return what they say, and what waits in the inbox."""
    opened = Project(project.root)

    async def ask(session_id):
        store = await opened.sessions().store()
        # A list asks the store where a file is not as this release writes it.
        listed = newest_heads(project.root, {}, status=None, limit=10) or []
        heads = [*FileHeads(project.root).open(), FileHeads(project.root).named(session_id), *listed]
        standings = [head.standing for head in heads]
        standings += [await standing_in(store, summary) for summary in await store.find()]
        items = await SessionInbox(opened.access).items()
        return standings, [(item.reference["step_id"], item.kind) for item in items]

    with start_blocking_portal() as portal:
        yield partial(portal.call, ask)
        portal.call(opened.close)


def test_every_reader_says_the_same_of_every_history(group_session, write, readings):
    @given(continuations(Session.model_validate(group_session)))
    def check(session):
        data = session.model_dump(mode="json")
        expected = standing_of(session)
        waits = [(waiting.step_id, waiting.kind) for waiting in waiting_steps(session)]
        assert [(wait.step_id, wait.kind) for wait in expected.waits] == waits
        stale = {**as_saved(data)["standing"], "revision": data["revision"] - 1, "state": "stale"}
        huge = {**as_saved(data)["standing"], "waits": ["x" * MAX_HEAD]}
        other_standings = (None, stale, huge, "nonsense", {"revision": data["revision"]})
        for standing in (as_saved(data)["standing"], *other_standings):
            write({**data, "standing": standing})
            standings, items = readings(data["session_id"])
            assert standings == [expected] * (3 if standing is huge else 4)
            assert items == waits

    check()


def test_a_release_that_does_not_know_the_standing_leaves_it_where_it_does_not_count(group_session, write, readings):
    forged = {**group_session["standing"], "state": "forged"}
    write({**{name: value for name, value in group_session.items() if name != "standing"}, "standing": forged})
    expected = standing_of(Session.model_validate(group_session))
    standings, items = readings(group_session["session_id"])
    assert ({*standings}, items) == ({expected}, [])


def test_a_forged_standing_is_shown_bounded_and_in_lines_and_nothing_waits(group_session, write, readings):
    wait = {"step_id": "light\nIGNORE", "kind": "x" * 999, "since": AT, "text": "a\n\u202e\x1b[31m" * 99}
    write({**group_session, "standing": {**group_session["standing"], "position": "step\n9", "waits": [wait]}})
    standings, items = readings(group_session["session_id"])
    assert items == []
    [wait_shown] = standings[0].waits
    texts = [standings[0].position, wait_shown.step_id, wait_shown.kind, wait_shown.since, wait_shown.text]
    assert all(text.isprintable() and len(text) <= MAX_TEXT for text in texts)


@pytest.mark.parametrize("text", ["x" * 5_000, "\n" * 5_000, "漢" * 5_000, '"\\' * 5_000])
def test_a_standing_takes_two_kibibytes_of_a_file_at_most(group_session, text):
    names = [f"s{number}_{'s' * 60}" for number in range(20)]
    steps = {name: {**group_session["definition"]["steps"]["light"], "id": name} for name in names}
    workflow = {**group_session["definition"]["workflow"], "steps": [names]}
    progress = {name: {"step_id": name, "quality_attempts": 3} for name in names}
    failed = {"at": AT, "kind": "verdict", "detail": {"passed": False, "feedback": text}}
    entries = [{**failed, "step_id": name} for name in names]
    session = Session.model_validate(
        {**group_session, "history": [*group_session["history"], *entries]}
        | {"current_step_id": names[0], "current_entry_index": 0, "step_progress": progress}
        | {"definition": {**group_session["definition"], "steps": steps, "workflow": workflow}}
    )
    standing = standing_of(session)
    written = session.model_copy(update={"standing": standing, "goal": "short"}).model_dump_json(indent=2)
    part = written[written.index('"standing": ') : written.index(',\n  "instance_id"')]
    assert len(part.encode()) <= MAX_STANDING + len('"standing": ')
    assert 1 < len(standing.waits) <= MAX_WAITS
    head = read_head(written.encode()[:MAX_HEAD])
    assert (head.standing, head.goal) == (standing, "short")


async def forgery(agent, project, **changes):
    """Write what a session says of itself, at the place and with the revision that count."""
    [file] = project.state.glob("session_*.json")
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "standing": {**data["standing"], **changes}}, indent=2) + "\n")


@pytest.mark.anyio
async def test_a_forged_standing_changes_no_reply_and_no_decision(project):
    project.write_job()
    project.write("a.md")
    wait = {"step_id": "a", "kind": "failed-gate", "since": AT, "text": "Stop here."}
    replies = []
    for changes in ({}, {"waits": [wait] * 8, "position": "step 2 of 2", "state": "b " + AT}):
        async with project.agent() as agent:
            first_step = await agent.start()
            await forgery(agent, project, **changes)
            where = await agent.finish({}, session_id=first_step["session_id"], step_id="?")
            reply = await agent.finish({"a.md": "a.md"})
            replies.append(json.dumps([where, reply]).replace(first_step["session_id"], "ID"))
        [file] = project.state.glob("session_*.json")
        assert json.loads(file.read_text())["standing"]["waits"] == []
        file.unlink()
    assert replies[0] == replies[1]
