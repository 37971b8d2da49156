"""What is saved comes back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from deepwork.api import SessionStatus, StateStore
from deepwork.models.history import HistoryEntry
from deepwork.models.sessions import StepProgress
from deepwork.testing.contracts.state_store.store import StoreContract, archive_quietly, load_plain
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
TEXT = "Größe, 数据, 🧭, \u202eright to left, e\u0301, 'quotes\" \\ %s {} \r\n\ttab"


class SavedSessionContract(StoreContract):
    """What is saved comes back."""

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
        assert await load_plain(store) == session

    async def test_fields_of_a_newer_release_survive(self, store: StateStore) -> None:
        session = a_session(
            a_newer_field={"kept": [1, "two", None]},
            step_progress={"a": StepProgress(step_id="a", also_newer=True)},
        )
        await store.save(session, expected=None)
        loaded = await load_plain(store)
        assert loaded.model_extra == {"a_newer_field": {"kept": [1, "two", None]}}
        assert loaded.step_progress["a"].model_extra == {"also_newer": True}

    async def test_every_text_survives(self, store: StateStore) -> None:
        await store.save(a_session(goal=TEXT, abort_reason=TEXT), expected=None)
        loaded = await load_plain(store)
        assert (loaded.goal, loaded.abort_reason) == (TEXT, TEXT)

    async def test_a_long_session_is_not_cut(self, store: StateStore) -> None:
        entries = [HistoryEntry(at=at(0), kind="step_begun", detail={"n": n, "text": "x" * 500}) for n in range(2000)]
        await store.save(a_session(history=entries), expected=None)
        assert (await load_plain(store)).history == entries

    async def test_history_keeps_its_order_whatever_the_clock_said(self, store: StateStore) -> None:
        entries = [HistoryEntry(at=at(minute), kind="step_begun") for minute in (5, 9, 2, 2, 7)]
        revision = await store.save(a_session(history=entries[:2]), expected=None)
        await store.save(a_session(history=entries), expected=revision)
        assert [entry.at for entry in (await load_plain(store)).history] == [entry.at for entry in entries]

    async def test_what_is_taken_out_of_a_session_is_gone(self, store: StateStore) -> None:
        revision = await store.save(a_session(notes_of_mine="x", abort_reason="no"), expected=None)
        await store.save(a_session(), expected=revision)
        assert await load_plain(store) == a_session()

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
                await archive_quietly(store, other_id)
            assert await store.load("s1") is not None, f"archive({other_id!r}) archived 's1'"
        assert await load_plain(store) == session

    async def test_nothing_outside_of_the_store_is_a_session(
        self, store: StateStore, read_raw: Callable[[str], Awaitable[Any]], tmp_path: Path
    ) -> None:
        """What is stored of a session is copied to places to which an id could lead, and must not be found there."""
        await store.save(a_session("s1"), expected=None)
        ids = _plant(json.dumps({**await read_raw("s1"), "session_id": "outside"}), tmp_path)
        for session_id in ids:
            assert await store.load(session_id) is None, session_id
            assert await store.peek([session_id]) == [], session_id


def _folders(tmp_path: Path) -> list[Path]:
    return [tmp_path, *(folder for folder in tmp_path.rglob("*") if folder.is_dir())]


def _plant(content: str, tmp_path: Path) -> list[str]:
    """Write files to every place near the store, and give the ids that could lead there."""
    folders = _folders(tmp_path)
    for folder in folders:
        for suffix in ("", ".json", ".yml", ".session"):
            (folder / f"outside{suffix}").write_text(content, encoding="utf-8")
    return [*(f"{'../' * depth}outside" for depth in range(1, 5)), *(str(folder / "outside") for folder in folders)]
