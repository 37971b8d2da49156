"""What every state store has to do."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from deepwork.api import (
    CorruptSession,
    HistoryEntry,
    Session,
    SessionStatus,
    SessionSummary,
    StaleSession,
    StateStore,
    StepProgress,
    StorageError,
)
from deepwork.testing.contracts.contract import Contract
from deepwork.testing.samples import a_session, at

HOSTILE_IDS = (
    "",
    ".",
    "..",
    "../s1",
    "a/b",
    "/etc/passwd",
    "s1\0",
    "s'; DROP TABLE sessions; --",
    "%",
    "é",
    "x" * 5000,
)
# What resembles the id of a stored session, and is another one.
VARIANTS = (
    "./s1",
    "/s1",
    "x/../s1",
    "S1",
    " s1",
    "s1 ",
    "s1\n",
    "s1.json",
    "s1%",
    "s%",
    "_1",
    "s1\0",
    "\uff531",
)

# Far longer than a store needs to hand its work to a thread, and short enough for an agent not to notice.
BLOCKED_SECONDS = 0.2

TEXT = "Größe, 数据, 🧭, \u202eright to left, e\u0301, 'quotes\" \\ %s {} \r\n\ttab"


class StateStoreContract(Contract):
    """Override `store`; override the other fixtures for what your store can do besides.

    The store of each test is empty, and inside of its `async with`.
    """

    @pytest.fixture
    async def store(self) -> Any:
        """Yield the store to test, inside of its `async with`."""
        raise NotImplementedError("override the fixture `store`")

    @pytest.fixture
    def reopen(self) -> Callable[[], StateStore]:
        """Give a function that makes another store on the same data, as a second server would."""
        pytest.skip("`reopen` is not overridden: the store keeps nothing beyond its own life")

    @pytest.fixture
    def read_raw(self) -> Callable[[str], Awaitable[Any]]:
        """Give an async function that reads what is stored of a session, past the store, as a mapping."""
        pytest.skip("`read_raw` is not overridden")

    @pytest.fixture
    def spoil(self) -> Callable[[str], Awaitable[None]]:
        """Give an async function that damages what is stored of a session, past the store."""
        pytest.skip("`spoil` is not overridden")

    # What is saved comes back

    async def test_a_session_comes_back_as_it_was_saved(self, store: StateStore) -> None:
        session = a_session(
            principal="ada",
            instance_id="q1",
            current_entry_index=1,
            parents=["p1", "p2"],
            branch_name="main",
            step_progress={
                "a": StepProgress(
                    step_id="a",
                    started_at=at(0),
                    completed_at=at(1),
                    outputs={"report": "a.md", "data": ["1.csv", "2.csv"]},
                    notes="done",
                    quality_attempts=2,
                ),
                "b": StepProgress(step_id="b", override_reason="seen"),
            },
            history=[HistoryEntry(at=at(0), kind="started", step_id="a", detail={"n": 1, "deep": [{"x": None}]})],
        )
        await store.save(session, expected=None)
        assert await _loaded(store) == session

    async def test_fields_of_a_newer_release_survive(self, store: StateStore) -> None:
        session = a_session(
            a_newer_field={"kept": [1, "two", None]},
            step_progress={"a": StepProgress(step_id="a", also_newer=True)},
        )
        await store.save(session, expected=None)
        loaded = await _loaded(store)
        assert loaded.model_extra == {"a_newer_field": {"kept": [1, "two", None]}}
        assert loaded.step_progress["a"].model_extra == {"also_newer": True}

    async def test_every_text_survives(self, store: StateStore) -> None:
        await store.save(a_session(goal=TEXT, abort_reason=TEXT), expected=None)
        loaded = await _loaded(store)
        assert (loaded.goal, loaded.abort_reason) == (TEXT, TEXT)

    async def test_a_long_session_is_not_cut(self, store: StateStore) -> None:
        entries = [HistoryEntry(at=at(0), kind="step_begun", detail={"n": n, "text": "x" * 500}) for n in range(2000)]
        await store.save(a_session(history=entries), expected=None)
        assert (await _loaded(store)).history == entries

    async def test_history_keeps_its_order_whatever_the_clock_said(self, store: StateStore) -> None:
        entries = [HistoryEntry(at=at(minute), kind="step_begun") for minute in (5, 9, 2, 2, 7)]
        revision = await store.save(a_session(history=entries[:2]), expected=None)
        await store.save(a_session(history=entries), expected=revision)
        assert [entry.at for entry in (await _loaded(store)).history] == [entry.at for entry in entries]

    async def test_what_is_taken_out_of_a_session_is_gone(self, store: StateStore) -> None:
        revision = await store.save(a_session(notes_of_mine="x", abort_reason="no"), expected=None)
        await store.save(a_session(), expected=revision)
        assert await _loaded(store) == a_session()

    async def test_an_unknown_session_is_none(self, store: StateStore) -> None:
        await store.save(a_session("s1"), expected=None)
        assert await store.load("s2") is None

    @pytest.mark.parametrize("session_id", HOSTILE_IDS, ids=lambda session_id: repr(session_id[:12]))
    async def test_an_id_that_nobody_could_have_made_is_none(self, store: StateStore, session_id: str) -> None:
        await store.save(a_session("s1"), expected=None)
        assert await store.load(session_id) is None

    async def test_a_variant_of_a_stored_id_is_no_id(self, store: StateStore, tmp_path: Path) -> None:
        """An id that only resembles a stored one stands for nothing, in every method that takes ids."""
        session = a_session("s1", status=SessionStatus.COMPLETED)
        await store.save(session, expected=None)
        paths = [way for folder in _folders(tmp_path) for way in (f"../{folder.name}/s1", f"{folder}/s1")]
        for other_id in [*VARIANTS, *paths]:
            assert await store.load(other_id) is None, other_id
            assert list(await store.peek([other_id])) == [], other_id
            if type(store).archive is not StateStore.archive:
                await _archive_quietly(store, other_id)
            assert await store.load("s1") is not None, f"archive({other_id!r}) archived 's1'"
        assert await _loaded(store) == session

    async def test_nothing_outside_of_the_store_is_a_session(
        self, store: StateStore, read_raw: Callable[[str], Awaitable[Any]], tmp_path: Path
    ) -> None:
        """What is stored of a session is copied to places to which an id could lead, and must not be found there."""
        await store.save(a_session("s1"), expected=None)
        ids = _plant(json.dumps({**await read_raw("s1"), "session_id": "outside"}), tmp_path)
        for session_id in ids:
            assert await store.load(session_id) is None, session_id
            assert await store.peek([session_id]) == [], session_id

    # Peeking: the summaries of some sessions, which every reply asks for

    async def test_peek_gives_the_summaries_of_the_sessions_that_are_there(self, store: StateStore) -> None:
        sessions = {
            name: a_session(name, goal=f"{TEXT} {name}", updated_at=at(minute), current_step_id="b")
            for name, minute in (("s1", 3), ("s2", 1), ("s3", 2))
        }
        for session in sessions.values():
            await store.save(session, expected=None)
        for asked in (["s1"], ["s2", "s1"], ["s3", "s1", "s2"]):
            assert _by_id(await store.peek(asked)) == {name: sessions[name].summary() for name in asked}

    async def test_peek_leaves_out_what_is_not_there(self, store: StateStore) -> None:
        assert list(await store.peek(["s1"])) == []
        await store.save(a_session("s1"), expected=None)
        assert list(await store.peek([])) == []
        assert list(_by_id(await store.peek(["s2", "s1", *HOSTILE_IDS]))) == ["s1"]

    async def test_peek_sees_a_change_at_once(self, store: StateStore) -> None:
        revision = await store.save(a_session("s1"), expected=None)
        assert list(_by_id(await store.peek(["s1"]))) == ["s1"]
        changed = a_session("s1", status=SessionStatus.ABORTED, updated_at=at(1))
        await store.save(changed, expected=revision)
        assert _by_id(await store.peek(["s1"])) == {"s1": changed.summary()}

    async def test_peek_keeps_the_order_in_which_it_was_asked(self, store: StateStore) -> None:
        for minute, session_id in enumerate(("s1", "s2", "s3")):
            await store.save(a_session(session_id, updated_at=at(minute)), expected=None)
        for asked in (["s2", "s3", "s1"], ["s3", "s1"], ["s1", "s3", "s2"]):
            assert list(_by_id(await store.peek(asked))) == asked

    async def test_peek_gives_the_error_of_a_damaged_session(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        await store.save(a_session("s1"), expected=None)
        await store.save(a_session("s2"), expected=None)
        await spoil("s1")
        items = list(await store.peek(["s1", "s2"]))
        assert [type(item) for item in items] == [CorruptSession, SessionSummary]
        assert items[1] == a_session("s2").summary()

    # Revisions keep servers apart

    async def test_a_reader_reads_in_another_thread_what_the_store_reads(self, store: StateStore) -> None:
        """`reader().load` and `reader().peek` give what `load` and `peek` give, missing sessions too."""
        await store.save(a_session("s1"), expected=None)
        reader = store.reader()
        assert await anyio.to_thread.run_sync(reader.load, "s1") == await store.load("s1")
        assert await anyio.to_thread.run_sync(reader.load, "s2") is None
        assert await anyio.to_thread.run_sync(reader.peek, ["s2", "s1"]) == await store.peek(["s2", "s1"])

    async def test_save_gives_the_revision_that_load_shows(self, store: StateStore) -> None:
        revision = await store.save(a_session(), expected=None)
        assert (await _stored(store)).revision == revision
        second = await store.save(a_session(goal="second"), expected=revision)
        assert (await _stored(store)).revision == second

    async def test_no_revision_comes_twice(self, store: StateStore) -> None:
        revisions = [await store.save(a_session(), expected=None)]
        for _ in range(5):
            revisions.append(await store.save(a_session(), expected=revisions[-1]))
        assert len(set(revisions)) == len(revisions)

    async def test_the_revision_in_the_session_is_not_looked_at(self, store: StateStore) -> None:
        revision = await store.save(a_session(revision=77), expected=None)
        second = await store.save(a_session(revision=1234), expected=revision)
        assert (await _stored(store)).revision == second

    async def test_a_new_session_must_not_exist(self, store: StateStore) -> None:
        await store.save(a_session(goal="first"), expected=None)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="second"), expected=None)
        assert (await _loaded(store)).goal == "first"

    async def test_a_stale_save_is_refused(self, store: StateStore) -> None:
        first = await store.save(a_session(), expected=None)
        await store.save(a_session(goal="second"), expected=first)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="third"), expected=first)

    async def test_a_revision_that_was_never_given_is_refused(self, store: StateStore) -> None:
        revision = await store.save(a_session(), expected=None)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="second"), expected=revision + 50)
        assert await _loaded(store) == a_session()

    async def test_a_refused_save_changes_nothing(self, store: StateStore) -> None:
        first = await store.save(a_session(), expected=None)
        second = await store.save(a_session(goal="second", updated_at=at(1)), expected=first)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="third", updated_at=at(2)), expected=first)
        assert await _loaded(store) == a_session(goal="second", updated_at=at(1))
        assert [summary.updated_at for summary in await store.find()] == [at(1)]
        await store.save(a_session(goal="fourth"), expected=second)

    async def test_a_change_of_what_does_not_exist_is_refused(self, store: StateStore) -> None:
        with pytest.raises(StaleSession):
            await store.save(a_session(), expected=1)
        assert await store.load("s1") is None

    async def test_of_parallel_saves_one_wins(self, store: StateStore) -> None:
        for turn in range(5):
            base = await store.save(a_session(f"s{turn}"), expected=None)
            won = await _all_at_once(store, [a_session(f"s{turn}", goal=f"goal {n}") for n in range(8)], expected=base)
            assert len(won) == 1
            assert (await _loaded(store, f"s{turn}")).goal == won[0]

    async def test_of_parallel_first_saves_one_wins(self, store: StateStore) -> None:
        won = await _all_at_once(store, [a_session(goal=f"goal {n}") for n in range(8)], expected=None)
        assert len(won) == 1
        assert (await _loaded(store)).goal == won[0]

    async def test_parallel_saves_of_several_sessions_all_last(self, store: StateStore) -> None:
        sessions = [a_session(f"s{n}", goal=f"goal {n}") for n in range(12)]
        assert len(await _all_at_once(store, sessions, expected=None)) == 12
        for session in sessions:
            assert (await _loaded(store, session.session_id)).goal == session.goal

    async def test_a_cancelled_save_leaves_the_old_or_the_new(self, store: StateStore) -> None:
        """Whatever it leaves is whole, and the next save goes on from there."""
        await store.save(a_session(goal="0", abort_reason="0"), expected=None)
        for turn in range(1, 15):
            before = await _stored(store)
            new = a_session(goal=str(turn), abort_reason=str(turn), history=[HistoryEntry(at=at(turn), kind="x")])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_save_quietly, store, new, before.revision)
                for _ in range(turn):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            after = await _stored(store)
            assert _plain(after) in (_plain(before), new), "the save was left half done"
            assert await store.save(_plain(after), expected=after.revision)

    # Listings

    async def test_the_last_changed_comes_first(self, store: StateStore) -> None:
        for session_id, minute in (("s1", 3), ("s2", 5), ("s3", 1), ("s4", 4)):
            await store.save(a_session(session_id, updated_at=at(minute)), expected=None)
        assert await _listed(store) == ["s2", "s4", "s1", "s3"]

    async def test_a_change_moves_a_session_to_the_front_at_once(self, store: StateStore) -> None:
        revision = await store.save(a_session("s1", updated_at=at(1)), expected=None)
        await store.save(a_session("s2", updated_at=at(2)), expected=None)
        assert await _listed(store) == ["s2", "s1"]
        await store.save(a_session("s1", updated_at=at(3)), expected=revision)
        assert await _listed(store) == ["s1", "s2"]

    async def test_nothing_is_found_in_an_empty_store(self, store: StateStore) -> None:
        assert list(await store.find()) == []

    async def test_a_summary_says_what_the_session_says(self, store: StateStore) -> None:
        session = a_session(
            goal=TEXT,
            status=SessionStatus.ABORTED,
            current_step_id="b",
            principal="ada",
            started_at=at(1),
            updated_at=at(2),
            a_newer_field=1,
        )
        await store.save(session, expected=None)
        assert await store.find() == [session.summary()]

    async def test_a_long_goal_that_looks_like_stored_data_is_found_whole(self, store: StateStore) -> None:
        session = a_session(goal='", "instance_id": null}\n' + "a long goal " * 2000)
        await store.save(session, expected=None)
        assert await store.find() == [session.summary()]

    async def test_only_the_asked_status_is_listed(self, store: StateStore) -> None:
        for minute, status in enumerate(SessionStatus):
            await store.save(a_session(status.value, status=status, updated_at=at(minute)), expected=None)
        for status in SessionStatus:
            assert await _listed(store, status=status) == [status.value]

    async def test_before_means_earlier_than_that_time(self, store: StateStore) -> None:
        for minute in (1, 2, 3):
            await store.save(a_session(f"s{minute}", updated_at=at(minute)), expected=None)
        assert await _listed(store, before=at(3)) == ["s2", "s1"]
        assert await _listed(store, before=at(1)) == []

    async def test_the_limit_keeps_the_last_changed(self, store: StateStore) -> None:
        for minute in (2, 5, 1, 4, 3):
            await store.save(a_session(f"s{minute}", updated_at=at(minute)), expected=None)
        assert await _listed(store, limit=2) == ["s5", "s4"]

    async def test_the_limit_is_ten_unless_told(self, store: StateStore) -> None:
        for minute in range(12):
            await store.save(a_session(f"s{minute}", updated_at=at(minute)), expected=None)
        assert await _listed(store) == [f"s{minute}" for minute in range(11, 1, -1)]

    async def test_the_limit_counts_what_the_filters_leave(self, store: StateStore) -> None:
        for minute in range(9):
            status = SessionStatus.ACTIVE if minute % 3 else SessionStatus.COMPLETED
            await store.save(a_session(f"s{minute}", status=status, updated_at=at(minute)), expected=None)
        assert await _listed(store, status=SessionStatus.COMPLETED, before=at(6), limit=2) == ["s3", "s0"]

    # Other agents go on meanwhile

    async def test_the_event_loop_is_not_blocked(self, store: StateStore) -> None:
        """A store that waits for a disk or a network does so in a thread, or all agents wait with it.

        The best of several attempts counts, because a first call may open files and import modules.
        """
        session = a_session(history=[HistoryEntry(at=at(0), kind="step_begun", detail={"text": "x" * 500})] * 50)
        revision = await store.save(session, expected=None)
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "load": lambda: store.load("s1"),
            "find": store.find,
            "peek": lambda: store.peek(["s1"]),
        }
        for name, call in calls.items():
            assert await _shortest_block(call) < BLOCKED_SECONDS, f"{name}() blocks the event loop"

        async def save() -> None:
            nonlocal revision
            revision = await store.save(session, expected=revision)

        assert await _shortest_block(save) < BLOCKED_SECONDS, "save() blocks the event loop"

    # Archives, for stores that have one

    async def test_an_archived_session_is_neither_loaded_nor_found(self, store: StateStore) -> None:
        _needs_archive(store)
        await store.save(a_session(status=SessionStatus.COMPLETED), expected=None)
        await store.archive("s1")
        assert await store.load("s1") is None
        assert await _listed(store) == []
        assert await _listed(store, status=SessionStatus.COMPLETED) == []
        assert list(await store.peek(["s1"])) == []

    async def test_archiving_an_unknown_session_does_nothing(self, store: StateStore) -> None:
        _needs_archive(store)
        await store.save(a_session(), expected=None)
        await store.archive("s2")
        await store.archive("s2")
        assert await _listed(store) == ["s1"]
        assert await _loaded(store) == a_session()

    async def test_archiving_leaves_other_sessions(self, store: StateStore) -> None:
        _needs_archive(store)
        for session_id in ("s1", "s2", "s11"):
            await store.save(a_session(session_id, status=SessionStatus.COMPLETED), expected=None)
        await store.archive("s1")
        assert sorted(await _listed(store)) == ["s11", "s2"]
        assert await _loaded(store, "s11") == a_session("s11", status=SessionStatus.COMPLETED)

    async def test_an_archived_session_is_listed_as_such(self, store: StateStore) -> None:
        _needs_archive(store)
        if type(store).archived is StateStore.archived:
            pytest.skip(f"{type(store).__name__} has no `archived`: archived sessions are named nowhere")
        for session_id in ("s1", "s2"):
            await store.save(a_session(session_id, status=SessionStatus.COMPLETED), expected=None)
        await store.archive("s1")
        assert [summary.session_id for summary in await store.archived()] == ["s1"]

    async def test_an_archived_session_is_not_overwritten(self, store: StateStore) -> None:
        """Its id is taken, although `load` does not see it."""
        _needs_archive(store)
        session = a_session(status=SessionStatus.COMPLETED)
        revision = await store.save(session, expected=None)
        await store.archive("s1")
        for expected in (None, revision):
            with pytest.raises(StaleSession):
                await store.save(a_session(goal="second"), expected=expected)
        assert await store.load("s1") is None
        if type(store).archived is not StateStore.archived:
            assert list(await store.archived()) == [session.summary()]

    async def test_a_damaged_session_is_not_listed_as_archived(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        _needs_archive(store)
        for session_id in ("s1", "s2"):
            await store.save(a_session(session_id, status=SessionStatus.COMPLETED), expected=None)
        await _spoil_and_load(store, spoil)
        for session_id in ("s1", "s2"):
            await _archive_quietly(store, session_id)
        if type(store).archived is not StateStore.archived:
            assert [summary.session_id for summary in await store.archived()] == ["s2"]

    # Several servers, for stores that can be reopened

    async def test_another_server_sees_a_save_at_once(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as second_store:
            revision = await store.save(a_session(), expected=None)
            assert await _loaded(second_store) == a_session()
            await store.save(a_session(goal="second"), expected=revision)
            assert (await _loaded(second_store)).goal == "second"

    async def test_another_server_finds_a_save_at_once(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as second_store:
            assert await _listed(second_store) == []
            await store.save(a_session(), expected=None)
            assert await _listed(second_store) == ["s1"]

    async def test_a_session_that_another_server_reopened_is_found_as_active(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        """A store may remember which sessions are over, but not for longer than that is so."""
        first = await store.save(a_session("s1", status=SessionStatus.COMPLETED), expected=None)
        assert await store.find(status=SessionStatus.ACTIVE) == []
        async with reopen() as second_store:
            second = await second_store.save(a_session("s1"), expected=first)
            await second_store.save(a_session("s1"), expected=second)
        assert [summary.session_id for summary in await store.find(status=SessionStatus.ACTIVE)] == ["s1"]

    async def test_a_save_that_another_server_made_stale_is_refused(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as second_store:
            revision = await store.save(a_session(), expected=None)
            await second_store.save(a_session(goal="theirs"), expected=revision)
            with pytest.raises(StaleSession):
                await store.save(a_session(goal="mine"), expected=revision)
            assert (await _loaded(store)).goal == "theirs"

    async def test_closing_one_store_loses_nothing_and_disturbs_no_other(
        self, store: StateStore, reopen: Callable[[], StateStore]
    ) -> None:
        async with reopen() as first:
            await first.save(a_session("s1"), expected=None)
        await store.save(a_session("s2"), expected=None)
        async with reopen() as second:
            assert sorted(await _listed(second)) == ["s1", "s2"]
            assert await _loaded(second, "s1") == a_session("s1")

    # Past the store

    async def test_what_is_stored_can_be_read_past_the_store(
        self, store: StateStore, read_raw: Callable[[str], Awaitable[Any]]
    ) -> None:
        await store.save(a_session(goal=TEXT), expected=None)
        raw = await read_raw("s1")
        assert (raw["session_id"], raw["goal"]) == ("s1", TEXT)

    async def test_a_damaged_session_is_an_error_and_never_none(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        await store.save(a_session(), expected=None)
        await spoil("s1")
        with pytest.raises(CorruptSession):
            await store.load("s1")

    async def test_a_damaged_session_hides_no_other(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        await store.save(a_session("s1"), expected=None)
        await store.save(a_session("s2"), expected=None)
        await spoil("s1")
        assert "s2" in await _listed(store)
        assert await _loaded(store, "s2") == a_session("s2")

    async def test_a_damaged_session_is_not_found(
        self, store: StateStore, spoil: Callable[[str], Awaitable[None]]
    ) -> None:
        """It is not listed any more, at the latest once `load` has noticed."""
        for session_id in ("s1", "s2"):
            await store.save(a_session(session_id), expected=None)
        await _spoil_and_load(store, spoil)
        assert await _listed(store) == ["s2"]
        assert await _listed(store, status=SessionStatus.ACTIVE) == ["s2"]

    async def test_a_damaged_session_is_named(self, store: StateStore, spoil: Callable[[str], Awaitable[None]]) -> None:
        if type(store).damaged is StateStore.damaged:
            pytest.skip(f"{type(store).__name__} has no `damaged`: damaged sessions are named nowhere")
        await store.save(a_session(), expected=None)
        await spoil("s1")
        with pytest.raises(CorruptSession):
            await store.load("s1")
        assert len(await store.damaged()) == 1


async def _stored(store: StateStore, session_id: str = "s1") -> Session:
    session = await store.load(session_id)
    assert session is not None, f"session {session_id!r} is missing"
    return session


def _plain(session: Session) -> Session:
    """A session without its revision, which is the store's."""
    return session.model_copy(update={"revision": 0})


async def _loaded(store: StateStore, session_id: str = "s1") -> Session:
    return _plain(await _stored(store, session_id))


async def _listed(store: StateStore, **filters: Any) -> list[str]:
    return [summary.session_id for summary in await store.find(**filters)]


def _folders(tmp_path: Path) -> list[Path]:
    return [tmp_path, *(folder for folder in tmp_path.rglob("*") if folder.is_dir())]


def _plant(content: str, tmp_path: Path) -> list[str]:
    """Write files to every place near the store, and give the ids that could lead there."""
    folders = _folders(tmp_path)
    for folder in folders:
        for suffix in ("", ".json", ".yml", ".session"):
            (folder / f"outside{suffix}").write_text(content, encoding="utf-8")
    return [*(f"{'../' * depth}outside" for depth in range(1, 5)), *(str(folder / "outside") for folder in folders)]


def _by_id(items: Iterable[SessionSummary | CorruptSession]) -> dict[str, SessionSummary]:
    """Give summaries by their ids, in their order; each id once, and no error among them."""
    summaries = [item for item in items if isinstance(item, SessionSummary)]
    assert len(summaries) == len(list(items)), "peek gave something else than summaries of sessions that are whole"
    by_id = {summary.session_id: summary for summary in summaries}
    assert len(by_id) == len(summaries), "peek gave a session twice"
    return by_id


async def _spoil_and_load(store: StateStore, spoil: Callable[[str], Awaitable[None]]) -> None:
    await spoil("s1")
    with pytest.raises(CorruptSession):
        await store.load("s1")


async def _archive_quietly(store: StateStore, session_id: str) -> None:
    """Archive what may not be there, or is damaged; a refusal is as good as doing nothing."""
    with contextlib.suppress(StorageError):
        await store.archive(session_id)


async def _shortest_block(call: Callable[[], Awaitable[Any]]) -> float:
    """Measure for how long a call holds up another task, at the best of several attempts."""
    return min([await _longest_gap(call) for _ in range(3)])


async def _longest_gap(call: Callable[[], Awaitable[Any]]) -> float:
    gaps = [0.0]

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await anyio.lowlevel.checkpoint()
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await anyio.lowlevel.checkpoint()
        await call()
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    return max(gaps)


async def _save_quietly(store: StateStore, session: Session, expected: int) -> None:
    await store.save(session, expected=expected)


async def _all_at_once(store: StateStore, sessions: list[Session], *, expected: int | None) -> list[str]:
    """Save all at the same time, and give the goals of those that were accepted."""
    won: list[str] = []

    async def save(session: Session) -> None:
        try:
            await store.save(session, expected=expected)
        except StaleSession:
            return
        won.append(session.goal)

    async with anyio.create_task_group() as tasks:
        for session in sessions:
            tasks.start_soon(save, session)
    return won


def _needs_archive(store: StateStore) -> None:
    if type(store).archive is StateStore.archive:
        pytest.skip(f"{type(store).__name__} has no archive")
