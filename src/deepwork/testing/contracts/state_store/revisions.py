"""Revisions keep servers apart."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from deepwork.api import Session, StateStore
from deepwork.errors import StaleSession
from deepwork.models.history import HistoryEntry
from deepwork.testing.contracts.state_store.store import StoreContract, load_plain, load_stored, plain
from deepwork.testing.samples import a_session, at


class RevisionContract(StoreContract):
    """Revisions keep servers apart."""

    async def test_a_reader_reads_in_another_thread_what_the_store_reads(self, store: StateStore) -> None:
        """`reader().load` and `reader().peek` give what `load` and `peek` give, missing sessions too."""
        await store.save(a_session("s1"), expected=None)
        reader = store.reader()
        assert await anyio.to_thread.run_sync(reader.load, "s1") == await store.load("s1")
        assert await anyio.to_thread.run_sync(reader.load, "s2") is None
        assert await anyio.to_thread.run_sync(reader.peek, ["s2", "s1"]) == await store.peek(["s2", "s1"])

    async def test_save_gives_the_revision_that_load_shows(self, store: StateStore) -> None:
        revision = await store.save(a_session(), expected=None)
        assert (await load_stored(store)).revision == revision
        second = await store.save(a_session(goal="second"), expected=revision)
        assert (await load_stored(store)).revision == second

    async def test_no_revision_comes_twice(self, store: StateStore) -> None:
        revisions = [await store.save(a_session(), expected=None)]
        for _ in range(5):
            revisions.append(await store.save(a_session(), expected=revisions[-1]))
        assert len(set(revisions)) == len(revisions)

    async def test_the_revision_in_the_session_is_not_looked_at(self, store: StateStore) -> None:
        revision = await store.save(a_session(revision=77), expected=None)
        second = await store.save(a_session(revision=1234), expected=revision)
        assert (await load_stored(store)).revision == second

    async def test_a_new_session_must_not_exist(self, store: StateStore) -> None:
        await store.save(a_session(goal="first"), expected=None)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="second"), expected=None)
        assert (await load_plain(store)).goal == "first"

    async def test_a_stale_save_is_refused(self, store: StateStore) -> None:
        first = await store.save(a_session(), expected=None)
        await store.save(a_session(goal="second"), expected=first)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="third"), expected=first)

    async def test_a_revision_that_was_never_given_is_refused(self, store: StateStore) -> None:
        revision = await store.save(a_session(), expected=None)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="second"), expected=revision + 50)
        assert await load_plain(store) == a_session()

    async def test_a_refused_save_changes_nothing(self, store: StateStore) -> None:
        first = await store.save(a_session(), expected=None)
        second = await store.save(a_session(goal="second", updated_at=at(1)), expected=first)
        with pytest.raises(StaleSession):
            await store.save(a_session(goal="third", updated_at=at(2)), expected=first)
        assert await load_plain(store) == a_session(goal="second", updated_at=at(1))
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
            assert (await load_plain(store, f"s{turn}")).goal == won[0]

    async def test_of_parallel_first_saves_one_wins(self, store: StateStore) -> None:
        won = await _all_at_once(store, [a_session(goal=f"goal {n}") for n in range(8)], expected=None)
        assert len(won) == 1
        assert (await load_plain(store)).goal == won[0]

    async def test_parallel_saves_of_several_sessions_all_last(self, store: StateStore) -> None:
        sessions = [a_session(f"s{n}", goal=f"goal {n}") for n in range(12)]
        assert len(await _all_at_once(store, sessions, expected=None)) == 12
        for session in sessions:
            assert (await load_plain(store, session.session_id)).goal == session.goal

    async def test_a_cancelled_save_leaves_the_old_or_the_new(self, store: StateStore) -> None:
        """Whatever it leaves is whole, and the next save goes on from there."""
        await store.save(a_session(goal="0", abort_reason="0"), expected=None)
        for turn in range(1, 15):
            before = await load_stored(store)
            new = a_session(goal=str(turn), abort_reason=str(turn), history=[HistoryEntry(at=at(turn), kind="x")])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_save_quietly, store, new, before.revision)
                for _ in range(turn):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            after = await load_stored(store)
            assert plain(after) in (plain(before), new), "the save was left half done"
            assert await store.save(plain(after), expected=after.revision)


async def _all_at_once(store: StateStore, sessions: list[Session], *, expected: int | None) -> list[str]:
    """Save all at the same time, and return the goals of the accepted ones."""
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


async def _save_quietly(store: StateStore, session: Session, expected: int) -> None:
    await store.save(session, expected=expected)
