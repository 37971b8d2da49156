"""Which session of a workflow is active already: found without a look at every file, and never wrongly."""

from __future__ import annotations

import os

import pytest

from deepwork.api import SessionStatus, Workspace
from deepwork.builtin.json_store import changes
from deepwork.builtin.json_store.store import JsonStore
from deepwork.testing import a_session
from deepwork.testing.samples import at

pytestmark = pytest.mark.anyio

NEW = a_session("new", updated_at=at(50))


@pytest.fixture
async def store(project):
    """A store that has looked at all files once, on a clock that counts finer than seconds."""
    async with JsonStore(Workspace(project.root)) as store:
        await store.save(NEW, expected=None)
        await store.save(a_session("first", updated_at=at(1)), expected=None)
        assert await other(store) == "first"
        yield store


@pytest.fixture
def looks(monkeypatch):
    """How often all files were looked at."""
    real, places = os.listdir, []

    def listdir(place):
        places.append(place)
        return real(place)

    monkeypatch.setattr(os, "listdir", listdir)
    return places


async def other(store):
    """The id of the other active session that is found."""
    summary = await store.other_active(NEW)
    return summary and summary.session_id


def copy(project, name, **changed):
    """Make a session by hand: a copy of the file of the first one."""
    text = (project.state / "session_first.json").read_text().replace('"first"', f'"{name}"')
    for field, (old, new) in changed.items():
        text = text.replace(f'"{field}": "{old}"', f'"{field}": "{new}"')
    (project.state / f"session_{name}.json").write_text(text)
    tick(project)


def tick(project):
    """Let the folder's time differ from the last one, which the clock of a system may have left within 4 ms."""
    status = project.state.stat()
    os.utime(project.state, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


async def test_after_the_first_look_only_what_was_saved_is_looked_at(store, looks):
    await store.save(a_session("second", updated_at=at(2)), expected=None)
    assert await other(store) == "second"
    revision = await store.save(a_session("first", updated_at=at(3)), expected=1)
    assert await other(store) == "first"
    await store.save(a_session("first", status=SessionStatus.ABORTED, updated_at=at(4)), expected=revision)
    assert await other(store) == "second"
    assert looks == []


async def test_what_another_server_saves_is_found_without_a_look_at_all_files(project, store, looks):
    async with JsonStore(Workspace(project.root)) as second_server:
        looks.clear()
        await second_server.save(a_session("theirs", updated_at=at(2)), expected=None)
        assert await other(store) == "theirs"
        await second_server.save(a_session("theirs", status=SessionStatus.COMPLETED), expected=1)
        assert await other(store) == "first"
        await second_server.save(a_session("theirs", updated_at=at(5)), expected=2)
        assert await other(store) == "theirs"
    assert looks == []


async def test_files_that_people_copy_change_or_remove_are_found(project, store):
    copy(project, "copied", updated_at=(at(1), at(2)))
    assert await other(store) == "copied"
    copy(project, "copied", updated_at=(at(1), at(2)), status=("active", "aborted"))
    assert await other(store) == "first"
    (project.state / "session_first.json").unlink()
    tick(project)
    assert await other(store) is None


async def test_a_file_that_is_changed_in_its_place_is_read_before_it_is_told_of(project, store):
    file = project.state / "session_first.json"
    file.write_text(file.read_text().replace('"a goal"', '"another goal"'))
    assert (await store.other_active(NEW)).goal == "another goal"
    file.write_text(file.read_text().replace('"main"', '"elsewhere"'))
    assert await other(store) is None


async def test_a_file_that_is_copied_while_a_save_syncs_is_found(project, store, monkeypatch):
    real = os.fsync

    def fsync(descriptor):
        if not (project.state / "session_copied.json").exists():
            copy(project, "copied", updated_at=(at(1), at(2)))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    await store.save(NEW, expected=1)
    assert await other(store) == "copied"


async def test_a_save_that_is_cut_off_before_it_is_noted_is_found(project, store, monkeypatch):
    async with JsonStore(Workspace(project.root)) as killed:
        with monkeypatch.context() as patch:
            patch.setattr(changes.Note, "write", lambda *_: None)
            await killed.save(a_session("theirs", updated_at=at(2)), expected=None)
    tick(project)
    assert await other(store) == "theirs"


async def test_where_the_clock_counts_in_seconds_all_files_are_looked_at(project, store):
    """A file that is copied in the second of the last save changes no time of the folder."""
    os.utime(project.state, ns=(10**18, 10**18))
    assert await other(store) == "first"
    copy(project, "copied", updated_at=(at(1), at(2)))
    os.utime(project.state, ns=(10**18, 10**18))
    assert await other(store) == "copied"


@pytest.mark.parametrize(
    "content",
    [None, "", "\0" * 99, "no\nnote\n", "pipe", "folder"],
    ids=["missing", "empty", "zeros", "text", "pipe", "folder"],
)
async def test_without_a_whole_file_of_changes_all_files_are_looked_at(project, store, content):
    file = project.state / changes.CHANGES
    before = project.state.stat()
    file.unlink()
    if content == "pipe":
        os.mkfifo(file)
    elif content == "folder":
        file.mkdir()
    elif content is not None:
        file.write_text(content)
    copy(project, "copied", updated_at=(at(1), at(2)))
    os.utime(project.state, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert await other(store) == "copied"
    await store.save(a_session("second", updated_at=at(3)), expected=None)
    assert await other(store) == "second"


@pytest.mark.parametrize("note", ["half a no\n", "half\n", "\n", "1 \N{SUPERSCRIPT TWO} a\n", f"1 {'9' * 5000} a\n"])
async def test_a_note_that_cannot_be_read_leads_to_a_look_at_all_files(project, store, note):
    before = project.state.stat()
    copy(project, "copied", updated_at=(at(1), at(2)))
    with (project.state / changes.CHANGES).open("a") as file:
        file.write(note)
    os.utime(project.state, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert await other(store) == "copied"


async def test_the_file_of_changes_is_begun_anew_before_it_is_large(project, store, monkeypatch):
    monkeypatch.setattr(changes, "MAX_CHANGES", 500)
    async with JsonStore(Workspace(project.root)) as second_server:
        for number in range(1, 31):
            await second_server.save(a_session("theirs", updated_at=at(number)), expected=number - 1 or None)
        assert (project.state / changes.CHANGES).stat().st_size < 700
        assert (await store.other_active(NEW)).updated_at == at(30)
        await second_server.save(a_session("theirs", status=SessionStatus.COMPLETED), expected=30)
        assert await other(store) == "first"
