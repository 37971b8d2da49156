"""Saves that wait together: they share the sync of the folder, and each has its own outcome."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
import threading

import anyio
import pytest

from deepwork.api import SessionStatus, Workspace
from deepwork.builtin.json_store.names import lock_name
from deepwork.builtin.json_store.store import JsonStore
from deepwork.errors import StaleSession, StorageError
from deepwork.testing import a_session
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(project):
    async with JsonStore(Workspace(project.root)) as store:
        await store.save(a_session("first"), expected=None)  # makes the folder
        yield store


async def saved(store, *saves):
    """Make saves that all wait when the first one begins, and give revisions and errors."""
    outcomes = {}
    begin = threading.Event()
    blocked = store._work.submit(begin.wait)

    async def save(session, expected):
        try:
            outcomes[session.session_id] = await store.save(session, expected=expected)
        except (StaleSession, StorageError) as error:
            outcomes[session.session_id] = error

    async with anyio.create_task_group() as tasks:
        for session, expected in saves:
            tasks.start_soon(save, session, expected)
        await anyio.wait_all_tasks_blocked()
        begin.set()
    await blocked.result()
    return outcomes


@pytest.fixture
def syncs(monkeypatch):
    """What is synced, in order: the names of files, `folder` for the folder."""
    synced = []
    real = os.fsync

    def fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append("folder" if is_folder else "file")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return synced


async def test_saves_that_wait_together_share_the_sync_of_the_folder(store, syncs):
    outcomes = await saved(store, *[(a_session(f"s{number}"), None) for number in range(8)])
    assert outcomes == {f"s{number}": 1 for number in range(8)}
    assert syncs == ["file"] * 8 + ["folder"]


async def test_a_save_that_comes_alone_syncs_its_file_and_the_folder(store, syncs):
    assert await store.save(a_session("alone"), expected=None) == 1
    assert syncs == ["file", "folder"]


async def test_no_save_is_acknowledged_before_the_sync_of_the_folder(store, monkeypatch):
    reached, go_on = threading.Event(), threading.Event()
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            reached.set()
            go_on.wait()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    acknowledged = []

    async def save(session):
        acknowledged.append(await store.save(session, expected=None))

    async with anyio.create_task_group() as tasks:
        for name in ("a", "b"):
            tasks.start_soon(save, a_session(name))
        await anyio.to_thread.run_sync(reached.wait)
        assert acknowledged == []
        go_on.set()
    assert acknowledged == [1, 1]


async def test_a_stale_save_fails_alone(store):
    stale = a_session("first", goal="late")
    outcomes = await saved(store, (a_session("a"), None), (stale, 7), (a_session("b"), None))
    assert isinstance(outcomes.pop("first"), StaleSession)
    assert outcomes == {"a": 1, "b": 1}
    assert (await store.load("first")).goal != "late"


async def test_one_of_two_saves_of_one_session_that_wait_together_wins(store):
    outcomes = []

    async def save(goal):
        try:
            outcomes.append(await store.save(a_session("first", goal=goal), expected=1))
        except StaleSession:
            outcomes.append("stale")

    begin = threading.Event()
    blocked = store._work.submit(begin.wait)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(save, "one")
        tasks.start_soon(save, "other")
        await anyio.wait_all_tasks_blocked()
        begin.set()
    await blocked.result()
    assert sorted(map(str, outcomes)) == ["2", "stale"]


async def test_a_file_that_cannot_be_synced_fails_alone(store, monkeypatch):
    real, failed = os.fsync, []

    def fsync(descriptor):
        if not failed:
            failed.append(descriptor)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    outcomes = await saved(store, (a_session("a"), None), (a_session("b"), None), (a_session("c"), None))
    assert "Input/output error; nothing was changed" in str(outcomes.pop("a"))
    assert outcomes == {"b": 1, "c": 1}
    assert await store.load("a") is None


async def test_if_the_folder_cannot_be_synced_every_file_is_as_it_was(project, store, monkeypatch):
    await store.save(a_session("old", goal="before"), expected=None)
    before = {file.name: file.read_bytes() for file in project.state.glob("session_*")}
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    outcomes = await saved(store, (a_session("old", goal="after"), 1), (a_session("new"), None))
    assert all("Input/output error; nothing was changed" in str(error) for error in outcomes.values())
    assert {file.name: file.read_bytes() for file in project.state.glob("session_*")} == before
    assert [name for name in os.listdir(project.state) if name.endswith(".tmp")] == []
    monkeypatch.undo()
    assert await store.save(a_session("old", goal="after"), expected=1) == 2


async def test_a_save_that_cannot_be_synced_takes_back_nothing_that_another_store_has_saved_since(
    project, store, monkeypatch
):
    real, other_saves = os.fsync, []

    async def save_elsewhere():
        async with JsonStore(Workspace(project.root)) as second_store:
            other_saves.append(await second_store.save(a_session("first", goal="theirs"), expected=2))

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) and not other_saves:
            other_saves.append("begun")
            anyio.run(save_elsewhere)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError):
        await store.save(a_session("first", goal="ours"), expected=1)
    assert other_saves == ["begun", 3]
    session = await store.load("first")
    assert (session.goal, session.revision) == ("theirs", 3)


async def test_a_lock_that_another_process_holds_delays_no_other_save(project, store):
    """The save whose lock is held waits by itself; the others are acknowledged meanwhile."""
    names = [f"s{number}" for number in range(4)]
    assert len({lock_name(name) for name in names}) == 4
    with (project.state / lock_name("s1")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        saves = []

        async def save(name):
            saves.append((name, await store.save(a_session(name), expected=None)))

        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(save, name)
            with anyio.fail_after(240):
                while len(saves) < 3:
                    await anyio.wait_all_tasks_blocked()
            assert sorted(saves) == [("s0", 1), ("s2", 1), ("s3", 1)]
            fcntl.flock(lock, fcntl.LOCK_UN)
    assert ("s1", 1) in saves


async def test_a_slow_disk_is_synced_by_several_threads_at_once(store, monkeypatch):
    """Where the first sync is slow, the others come together, so that the kernel can join them."""
    monkeypatch.setattr("deepwork.builtin.json_store.saves.SLOW_SYNC_SECONDS", 0)
    together = threading.Barrier(3, timeout=PATIENCE)
    real, synced_files = os.fsync, itertools.count()

    def fsync(descriptor):
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode) and next(synced_files):
            together.wait()
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    outcomes = await saved(store, *[(a_session(f"s{number}"), None) for number in range(4)])
    assert outcomes == {f"s{number}": 1 for number in range(4)}


async def test_a_session_that_another_store_reopens_is_found_again(project, store):
    """A store remembers which sessions are over, and does not look into their files again."""
    await store.save(a_session("s1", status=SessionStatus.COMPLETED), expected=None)
    for _ in range(2):
        assert [summary.session_id for summary in await store.find(status=SessionStatus.ACTIVE)] == ["first"]
    async with JsonStore(Workspace(project.root)) as second_store:
        for revision, status in ((1, SessionStatus.ACTIVE), (2, SessionStatus.ACTIVE)):
            await second_store.save(a_session("s1", status=status), expected=revision)
    summaries = await store.find(status=SessionStatus.ACTIVE)
    assert sorted(summary.session_id for summary in summaries) == ["first", "s1"]
