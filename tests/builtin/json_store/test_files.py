"""What only the store `json` has: its files. What all stores do: `testing/contracts/state_store/test_store.py`."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import textwrap
import time

import anyio
import pytest

from deepwork.api import MemoryStore, Session, SessionStatus, Workspace
from deepwork.builtin.json_store.store import JsonStore
from deepwork.errors import CorruptSession, PathRefused, StorageError
from deepwork.models.sessions import SCHEMA_VERSION
from deepwork.testing import a_session

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(project):
    async with JsonStore(Workspace(project.root)) as store:
        yield store


@pytest.fixture
def file(project):
    """The file of the session `s1`."""
    return project.state / "session_s1.json"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_file_is_json_that_people_can_read(store, file):
    await store.save(a_session(goal="Grüße 🚀"), expected=None)
    text = file.read_text()
    content = json.loads(text)
    assert text == json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    assert (content["session_id"], content["goal"], content["revision"]) == ("s1", "Grüße 🚀", 1)
    assert content["schema_version"] == SCHEMA_VERSION


async def test_files_are_private_in_a_private_folder(store, file):
    old = os.umask(0)
    try:
        await store.save(a_session(), expected=None)
    finally:
        os.umask(old)
    assert mode(file.parent) == 0o700
    assert {entry.name: mode(entry) for entry in file.parent.iterdir() if mode(entry) != 0o600} == {}


async def test_the_folder_keeps_itself_out_of_git(project):
    git = ["git", "-C", str(project.root), "-c", "core.excludesFile="]
    await anyio.run_process([*git, "init", "--quiet"])
    project.write_job()
    async with project.agent() as agent:
        await agent.start()
    untracked = (await anyio.run_process([*git, "status", "--porcelain", "--untracked-files=all"])).stdout
    assert b".deepwork/jobs/demo/job.yml" in untracked
    assert b".deepwork/tmp" not in untracked


async def test_ids_are_random_and_stand_in_the_file_name(project):
    project.write_job()
    async with project.agent() as agent:
        ids = [(await agent.start())["session_id"] for _ in range(3)]
    assert all(re.fullmatch("[0-9a-f]{32}", session_id) for session_id in ids)
    assert len({session_id[:8] for session_id in ids}) == 3
    assert {f"session_{session_id}.json" for session_id in ids} <= set(os.listdir(project.state))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'{"session_id": "s1"}',
        b"\xff\xfe",
        b'{"session_id": "s1", "goal": "half of a fi',
    ],
    ids=["empty", "brace", "null", "list", "fields missing", "not UTF-8", "torn"],
)
async def test_a_damaged_file_is_set_aside_named_and_not_taken_for_none(store, file, content):
    await store.save(a_session(), expected=None)
    file.write_bytes(content)
    with pytest.raises(CorruptSession) as error:
        await store.load("s1")
    aside = re.search(r"renamed to (\.deepwork/tmp/session_s1\.json\.\d{8}T\d{6}\.corrupt)", error.value.message)[1]
    assert (file.parent.parent.parent / aside).read_bytes() == content
    assert not file.exists()
    assert await store.damaged() == [aside]


async def test_a_damaged_file_is_not_overwritten_by_a_save_either(store, file):
    await store.save(a_session(), expected=None)
    file.write_bytes(b"{")
    for expected in (None, 1):
        file.write_bytes(b"{")
        with pytest.raises(CorruptSession):
            await store.save(a_session(), expected=expected)
        assert not file.exists()


async def test_a_file_of_another_session_is_damaged(store, file):
    await store.save(a_session("s2"), expected=None)
    (file.parent / "session_s2.json").rename(file)
    with pytest.raises(CorruptSession, match="it is of session 's2'"):
        await store.load("s1")


async def test_an_agent_reads_where_the_damaged_file_of_its_session_is(project):
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
        (project.state / f"session_{session_id}.json").write_text('{"session_id": ')
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, session_id=session_id)
    assert re.search(rf"renamed to \.deepwork/tmp/session_{session_id}\.json\.\w+\.corrupt", text)


async def test_a_file_of_a_newer_release_is_refused_by_its_version_and_left_alone(store, file):
    await store.save(a_session(), expected=None)
    content = file.read_text().replace(f'"schema_version": {SCHEMA_VERSION}', '"schema_version": 99')
    file.write_text(content)
    for use in (store.load("s1"), store.save(a_session(), expected=1)):
        with pytest.raises(CorruptSession) as error:
            await use
        assert "Session 's1' was written by a newer release (schema_version 99; " in error.value.message
        assert error.value.hint == "Install that release to go on with this session."
    assert file.read_text() == content


async def test_a_file_of_a_newer_release_is_left_alone_even_if_this_one_cannot_read_it(store, file):
    await store.save(a_session(), expected=None)
    content = '{"schema_version": 99, "name": "everything is called otherwise now"}'
    file.write_text(content)
    with pytest.raises(CorruptSession, match="schema_version 99"):
        await store.load("s1")
    assert file.read_text() == content


async def test_a_file_of_release_0_9_is_read(store, file):
    file.parent.mkdir(parents=True)
    file.write_text(
        json.dumps(
            {
                "session_id": "s1",
                "job_name": "demo",
                "workflow_name": "main",
                "instance_id": None,
                "goal": "old",
                "current_step_id": "a",
                "current_entry_index": 0,
                "step_progress": {
                    "a": {
                        "step_id": "a",
                        "started_at": "2025-01-01T00:00:00+00:00",
                        "completed_at": None,
                        "outputs": {},
                        "notes": None,
                        "quality_attempts": 0,
                    }
                },
                "started_at": "2025-01-01T00:00:00+00:00",
                "completed_at": None,
                "status": "active",
                "abort_reason": None,
            },
            indent=2,
        )
    )
    session = await store.load("s1")
    assert (session.goal, session.revision, session.schema_version) == ("old", 0, 0)
    assert [summary.session_id for summary in await store.find()] == ["s1"]
    assert await store.save(session, expected=0) == 1


def test_a_listing_reads_every_field_that_a_summary_is_made_of():
    """A listing reads a file up to one field only. A field that `summary` uses must be declared before it."""
    used = set()

    class Recorder:
        """A session without optional values, so that `summary` asks for everything that it may use."""

        def __getattr__(self, name):
            used.add(name)
            return None if name in ("updated_at", "completed_at") else getattr(a_session(), name)

    assert Session.summary(Recorder()).session_id == "s1"
    fields = [*Session.model_fields]
    assert used <= set(fields[: fields.index("standing")])
    assert fields[fields.index("standing") + 1] == "instance_id"


# No file of this process may grow beyond some bytes: the kernel itself refuses the write.
ON_A_FULL_DISK = """
import os, sys
from contextlib import contextmanager
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_FSIZE, setrlimit
import anyio
from deepwork.testing import DeepworkProject

@contextmanager
def full_disk():
    setrlimit(RLIMIT_FSIZE, (100, RLIM_INFINITY))
    yield
    setrlimit(RLIMIT_FSIZE, (RLIM_INFINITY, RLIM_INFINITY))

async def main():
    project = DeepworkProject(Path(sys.argv[1]))
    async with project.agent() as agent:
        await act(project, agent)

async def act(project, agent):
{act}

anyio.run(main)
"""


@pytest.fixture
def on_a_full_disk(project):
    """Act as an agent in a process with a `full_disk()`, and give what it prints, line by line."""

    async def on_a_full_disk(act):
        project.write_job()
        project.write("a.md")
        code = ON_A_FULL_DISK.replace("{act}", textwrap.indent(act, "    "))
        process = await anyio.run_process([sys.executable, "-c", code, str(project.root)])
        return process.stdout.decode().splitlines()

    return on_a_full_disk


@pytest.mark.slow
async def test_a_failed_write_says_the_cause_leaves_the_old_bytes_and_the_next_call_works(on_a_full_disk):
    lines = await on_a_full_disk("""
begin = await agent.start()
file = project.state / f"session_{begin['session_id']}.json"
before = file.read_bytes()
with full_disk():
    print(await agent.refused("finished_step", outputs={"a.md": "a.md"}))
print(file.read_bytes() == before, [name for name in os.listdir(project.state) if name.endswith(".tmp")])
print((await agent.finish({"a.md": "a.md"}))["status"])
""")
    assert lines[0] == "The session could not be saved: File too large; nothing was changed"
    assert lines[1] == "Fix the cause (space, quota, permissions) in .deepwork/tmp, then call again."
    assert lines[-2:] == ["True []", "next_step"]


@pytest.mark.slow
async def test_a_start_that_cannot_be_saved_leaves_no_session_and_the_next_one_works(on_a_full_disk):
    lines = await on_a_full_disk("""
with full_disk():
    print(await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main"))
print([name for name in os.listdir(project.state) if "session_" in name])
print((await agent.start())["step_id"])
""")
    assert lines[0] == "The session could not be saved: File too large; nothing was changed"
    assert lines[-2:] == ["[]", "a"]


@pytest.mark.parametrize("link", [".deepwork", ".deepwork/tmp"])
async def test_a_folder_that_is_a_link_out_of_the_project_is_refused_and_nothing_is_written(project, tmp_path, link):
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / link).parent.mkdir(exist_ok=True)
    (project.root / link).symlink_to(outside)
    store = JsonStore(Workspace(project.root))
    for use in (store.save(a_session(), expected=None), store.load("s1"), store.find(), store.archive("s1")):
        with pytest.raises(PathRefused, match=r"the folder '.deepwork/tmp' lies outside of the project"):
            await use
    assert os.listdir(outside) == []


async def test_an_agent_is_told_that_the_folder_has_become_a_link_out_of_the_project(project, tmp_path):
    project.write_job()
    before = sorted(os.listdir(tmp_path))
    async with project.agent() as agent:
        project.state.symlink_to(tmp_path)
        text = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
    assert text.splitlines()[0] == "the folder '.deepwork/tmp' lies outside of the project"
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("session_id", ["../escaped", "a/b", "/tmp/x", "..", "s1.json/../s2"])
async def test_an_id_with_path_characters_touches_no_other_file(project, store, session_id):
    await store.save(a_session(), expected=None)
    project.write(".deepwork/escaped.json", "mine")
    before = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file() and path.suffix != ".lock"}
    assert await store.load(session_id) is None
    with pytest.raises(StorageError):
        await store.save(a_session(session_id), expected=None)
    after = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file() and path.suffix != ".lock"}
    assert after == before


async def test_a_link_in_the_place_of_a_session_is_not_followed(store, file, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    await store.save(a_session("s2"), expected=None)
    file.symlink_to(secret)
    with pytest.raises(StorageError):
        await store.load("s1")
    with pytest.raises(StorageError):
        await store.save(a_session(), expected=None)
    assert secret.read_text() == "{}"


async def test_a_pipe_in_the_place_of_a_session_holds_nobody_up(store, file):
    await store.save(a_session("s2"), expected=None)
    os.mkfifo(file)
    with pytest.raises(CorruptSession):
        await store.load("s1")
    assert [summary.session_id for summary in await store.find()] == ["s2"]


async def test_what_a_cut_off_write_left_is_ignored_and_removed_after_an_hour(project, store, file):
    await store.save(a_session(), expected=None)
    old, new = (file.parent / f".session_s1.json.{digit * 16}.tmp" for digit in "01")
    for leftover in (old, new):
        leftover.write_text("{")
    os.utime(old, (time.time() - 3700, time.time() - 3700))
    assert [summary.session_id for summary in await store.find()] == ["s1"]
    async with JsonStore(Workspace(project.root)):
        pass
    assert (old.exists(), new.exists(), file.exists()) == (False, True, True)


async def test_an_active_session_is_kept_in_memory_and_one_that_is_over_is_read_again(store):
    session = a_session()
    await store.save(session, expected=None)
    active = await store.load("s1")
    assert await store.load("s1") is active
    await store.save(session.model_copy(update={"status": SessionStatus.COMPLETED}), expected=1)
    over = await store.load("s1")
    assert over.status is SessionStatus.COMPLETED
    assert await store.load("s1") is not over


async def test_an_archived_session_is_moved_with_its_files_and_no_others(store, file):
    for name in ("s1", "s10", "as1"):
        await store.save(a_session(name), expected=None)
    for name in ("quality_review_s1_a.md", "resume_s1.md", "quality_review_s10_a.md"):
        (file.parent / name).write_text("text")
    await store.archive("s1")
    assert sorted(os.listdir(file.parent / "archive")) == [
        "quality_review_s1_a.md",
        "resume_s1.md",
        "session_s1.json",
    ]
    assert await store.load("s1") is None
    assert sorted(summary.session_id for summary in await store.find()) == ["as1", "s10"]


async def test_nothing_is_written_before_the_first_save(project, store):
    assert await store.load("s1") is None
    assert await store.find() == []
    assert not project.state.exists()


async def test_the_stamps_differ_after_each_change_and_are_read_anew_only_then(store, file):
    assert await store.stamps() == {}
    revision = await store.save(a_session(), expected=None)
    first = await store.stamps()
    assert [*first] == ["s1"]
    await store.save(a_session(), expected=revision)
    second = await store.stamps()
    assert second["s1"] != first["s1"]
    os.utime(file.parent, ns=(0, 0))  # as if nothing had come into the folder for a long time
    third = await store.stamps()
    assert third == second
    assert await store.stamps() is third
    await store.archive("s1")
    assert await store.stamps() == {}


async def test_the_stamps_of_a_store_that_lists_sessions_are_their_times():
    store = MemoryStore()
    await store.save(a_session(), expected=None)
    assert await store.stamps() == {"s1": a_session().summary().updated_at}
