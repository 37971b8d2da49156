"""What every store promises, shown for each of the core's; what one has of its own stands in a file of its own."""

from __future__ import annotations

import anyio
import pytest

from deepwork.api import (
    HistoryEntry,
    SessionStatus,
    StaleSession,
    StateStore,
    StepProgress,
    Workspace,
)
from deepwork.house import House

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["json", "memory"])
async def store(request, project):
    """The store as a server gets it: by its name, through the hook."""
    spec = House(project.root).store(request.param)
    async with spec.open(Workspace(project.root)) as store:
        assert isinstance(store, StateStore)
        yield store


def same(found, saved, revision):
    return found == saved.model_copy(update={"revision": revision})


async def test_a_session_comes_back_as_it_was_saved(store, session):
    saved = session(
        goal='Grüße, 漢字, 🚀, "quotes", \\ and\nlines\t\x00',
        parents=["p1", "p2"],
        step_progress={"a": StepProgress(step_id="a", outputs={"x": "a.md", "y": ["b", "c"]}, notes="n").model_dump()},
        history=[HistoryEntry(at="t", kind="started", detail={"deep": {"list": [1, None, "ö"]}}).model_dump()],
    )
    assert await store.save(saved, expected=None) == 1
    assert same(await store.load("s1"), saved, 1)


async def test_a_session_that_nobody_saved_is_none(store, session):
    await store.save(session(), expected=None)
    assert await store.load("s2") is None


async def test_every_save_counts_the_revision_up(store, session):
    first = session()
    assert [await store.save(first, expected=expected) for expected in (None, 1, 2)] == [1, 2, 3]
    assert (await store.load("s1")).revision == 3


@pytest.mark.parametrize("expected", [None, 1, 3])
async def test_a_save_on_another_revision_is_refused_and_changes_nothing(store, session, expected):
    await store.save(session(), expected=None)
    kept = session(goal="kept")
    await store.save(kept, expected=1)
    with pytest.raises(StaleSession):
        await store.save(session(goal="lost"), expected=expected)
    assert same(await store.load("s1"), kept, 2)


async def test_a_change_of_a_session_that_is_not_there_is_refused(store, session):
    with pytest.raises(StaleSession):
        await store.save(session(), expected=1)
    assert await store.load("s1") is None


async def test_the_revision_in_the_session_itself_is_not_looked_at(store, session):
    assert await store.save(session(revision=99), expected=None) == 1


async def test_of_many_saves_at_once_one_wins(store, session):
    await store.save(session(), expected=None)
    outcomes = []

    async def save(number):
        try:
            await store.save(session(goal=f"goal {number}"), expected=1)
            outcomes.append(number)
        except StaleSession:
            outcomes.append(None)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(save, number)
    winners = [number for number in outcomes if number is not None]
    assert len(outcomes) == 20
    assert len(winners) == 1
    assert (await store.load("s1")).goal == f"goal {winners[0]}"


async def test_of_many_that_begin_one_session_at_once_one_wins(store, session):
    refused = []

    async def save():
        try:
            await store.save(session(), expected=None)
        except StaleSession:
            refused.append(True)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(save)
    assert len(refused) == 19
    assert (await store.load("s1")).revision == 1


async def test_sessions_do_not_disturb_each_other(store, session):
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(lambda one: store.save(one, expected=None), session(f"s{number}", goal=f"{number}"))
    assert [(await store.load(f"s{number}")).goal for number in range(20)] == [str(number) for number in range(20)]


@pytest.fixture
async def five(store, session):
    """Five sessions, saved in an order that is not that of their times."""
    statuses = ["active", "completed", "active", "aborted", "active"]
    for number in (3, 0, 4, 1, 2):
        changed = f"2026-01-0{number + 1}T00:00:00.000000+00:00"
        one = session(f"s{number}", status=statuses[number], updated_at=changed, goal=f"goal {number}")
        await store.save(one, expected=None)


def ids(found):
    return [summary.session_id for summary in found]


@pytest.mark.usefixtures("five")
class TestFind:
    async def test_the_last_changed_come_first(self, store):
        assert ids(await store.find()) == ["s4", "s3", "s2", "s1", "s0"]

    async def test_of_one_status_only_those(self, store):
        assert ids(await store.find(status=SessionStatus.ACTIVE)) == ["s4", "s2", "s0"]
        assert ids(await store.find(status=SessionStatus.ABORTED)) == ["s3"]

    async def test_before_a_time_leaves_out_what_changed_then_or_later(self, store):
        assert ids(await store.find(before="2026-01-03T00:00:00.000000+00:00")) == ["s1", "s0"]

    async def test_a_limit_cuts_the_oldest_off(self, store):
        assert ids(await store.find(limit=2)) == ["s4", "s3"]
        assert await store.find(limit=0) == []

    async def test_all_conditions_hold_together(self, store):
        found = await store.find(status=SessionStatus.ACTIVE, before="2026-01-04T00:00:00.000000+00:00", limit=1)
        assert ids(found) == ["s2"]

    async def test_a_summary_says_what_a_listing_needs(self, store):
        summary = (await store.find(limit=1))[0]
        assert summary.model_dump(mode="json") == {
            "session_id": "s4",
            "job_name": "demo",
            "workflow_name": "main",
            "step_id": "a",
            "goal": "goal 4",
            "status": "active",
            "started_at": "2026-01-01T00:00:00.000000+00:00",
            "updated_at": "2026-01-05T00:00:00.000000+00:00",
            "principal": "local",
        }

    async def test_a_changed_session_moves_to_the_front(self, store, session):
        await store.save(session("s0", updated_at="2026-02-01T00:00:00.000000+00:00"), expected=1)
        assert ids(await store.find())[0] == "s0"


async def test_an_empty_store_finds_nothing(store):
    assert await store.find() == []
    assert await store.damaged() == []


async def test_a_long_goal_and_one_that_looks_like_json_are_found_whole(store, session):
    long = session("long", goal="x" * 65536)
    odd = session("odd", goal='",\n  "instance_id": "fooled", "status": "aborted')
    await store.save(long, expected=None)
    await store.save(odd, expected=None)
    assert {one.session_id: one.goal for one in await store.find()} == {"long": long.goal, "odd": odd.goal}


async def test_fields_that_a_newer_release_added_survive_a_load_and_a_save(store, session):
    newer = session(
        colour="blue",
        step_progress={"a": {"step_id": "a", "mood": ["good"]}},
        history=[{"at": "t", "kind": "danced", "partner": {"name": "Ada"}}],
    )
    await store.save(newer, expected=None)
    changed = (await store.load("s1")).model_copy(update={"goal": "another"})
    await store.save(changed, expected=1)
    found = (await store.load("s1")).model_dump()
    assert found["goal"] == "another"
    assert found["colour"] == "blue"
    assert found["step_progress"]["a"]["mood"] == ["good"]
    assert found["history"][0]["partner"] == {"name": "Ada"}


@pytest.mark.parametrize("session_id", ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0b", "x" * 300, "ö"])
async def test_an_id_that_no_session_can_have_is_none(store, session_id):
    assert await store.load(session_id) is None
