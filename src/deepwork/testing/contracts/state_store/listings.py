"""Listings, and other agents that go on meanwhile."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel

from deepwork.api import SessionStatus, StateStore
from deepwork.models.history import HistoryEntry
from deepwork.testing.contracts.state_store.store import StoreContract, list_ids
from deepwork.testing.samples import a_session, at

# Far longer than a store needs to hand its work to a thread, and short enough for an agent not to notice.
BLOCKED_SECONDS = 0.2
ATTEMPTS = 30
TEXT = "Größe, 数据, 🧭, \u202eright to left, e\u0301, 'quotes\" \\ %s {} \r\n\ttab"


class ListingContract(StoreContract):
    """Listings, and other agents that go on meanwhile."""

    async def test_the_last_changed_comes_first(self, store: StateStore) -> None:
        for session_id, minute in (("s1", 3), ("s2", 5), ("s3", 1), ("s4", 4)):
            await store.save(a_session(session_id, updated_at=at(minute)), expected=None)
        assert await list_ids(store) == ["s2", "s4", "s1", "s3"]

    async def test_a_change_moves_a_session_to_the_front_at_once(self, store: StateStore) -> None:
        revision = await store.save(a_session("s1", updated_at=at(1)), expected=None)
        await store.save(a_session("s2", updated_at=at(2)), expected=None)
        assert await list_ids(store) == ["s2", "s1"]
        await store.save(a_session("s1", updated_at=at(3)), expected=revision)
        assert await list_ids(store) == ["s1", "s2"]

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
            assert await list_ids(store, status=status) == [status.value]

    async def test_before_means_earlier_than_that_time(self, store: StateStore) -> None:
        for minute in (1, 2, 3):
            await store.save(a_session(f"s{minute}", updated_at=at(minute)), expected=None)
        assert await list_ids(store, before=at(3)) == ["s2", "s1"]
        assert await list_ids(store, before=at(1)) == []

    async def test_the_limit_keeps_the_last_changed(self, store: StateStore) -> None:
        for minute in (2, 5, 1, 4, 3):
            await store.save(a_session(f"s{minute}", updated_at=at(minute)), expected=None)
        assert await list_ids(store, limit=2) == ["s5", "s4"]

    async def test_the_limit_is_ten_unless_told(self, store: StateStore) -> None:
        for minute in range(12):
            await store.save(a_session(f"s{minute}", updated_at=at(minute)), expected=None)
        assert await list_ids(store) == [f"s{minute}" for minute in range(11, 1, -1)]

    async def test_the_limit_counts_what_the_filters_leave(self, store: StateStore) -> None:
        for minute in range(9):
            status = SessionStatus.ACTIVE if minute % 3 else SessionStatus.COMPLETED
            await store.save(a_session(f"s{minute}", status=status, updated_at=at(minute)), expected=None)
        assert await list_ids(store, status=SessionStatus.COMPLETED, before=at(6), limit=2) == ["s3", "s0"]

    async def test_another_active_session_of_a_workflow_is_the_last_changed(self, store: StateStore) -> None:
        new = a_session("new", updated_at=at(9), principal="ada", job_name="Größe", workflow_name="a_b")
        others = {
            "last": {"updated_at": at(4)},
            "first": {"updated_at": at(3)},
            "of_another_workflow": {"updated_at": at(5), "workflow_name": "a_bc"},
            "of_another_job": {"updated_at": at(6), "job_name": "demo"},
            "of_another_principal": {"updated_at": at(7), "principal": "adam"},
            "over": {"updated_at": at(8), "status": SessionStatus.COMPLETED},
        }
        await store.save(new, expected=None)
        assert await store.other_active(new) is None
        for session_id, fields in others.items():
            await store.save(new.model_copy(update={"session_id": session_id, **fields}), expected=None)
        last = await store.other_active(new)
        assert last
        assert (last.session_id, last.updated_at) == ("last", at(4))
        await store.save(
            new.model_copy(update={"session_id": "last", "status": SessionStatus.ABORTED, "updated_at": at(9)}),
            expected=1,
        )
        first = await store.other_active(new)
        assert first
        assert first.session_id == "first"

    async def test_the_event_loop_is_not_blocked(self, store: StateStore) -> None:
        """A store that waits for a disk or a network does so in a thread, or all agents wait with it.

        The first good one of many attempts counts: a first call may open files and import modules, and a machine that
        is busy holds up a task too.
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


async def _shortest_block(call: Callable[[], Awaitable[Any]]) -> float:
    """Measure for how long a call holds up another task, until it was short or there were many attempts."""
    for _ in range(ATTEMPTS):
        gap = await _longest_gap(call)
        if gap < BLOCKED_SECONDS:
            break
    return gap


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
