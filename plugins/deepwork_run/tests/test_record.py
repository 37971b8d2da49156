"""The record of a run is in the project, so anything may stand in it."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from acting import works

from deepwork.api import Workspace
from deepwork.errors import StorageError
from deepwork.ports.agent import Limited, Spent
from deepwork.testing.wire import PATIENCE
from deepwork_run.options import OnLimit
from deepwork_run.record import MAX_TRANSCRIPT, Record, records, remove_old_transcripts


@pytest.fixture
def record(project):
    return Record(Workspace(project.root), "s1")


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        "7",
        '"text"',
        '{"kind": "spent"}',
        '{"kind": "run", "at": "x", "options": 7}',
        '{"kind": "worker", "at": "x", "number": "many", "agent": "a", "hooks": 1, "step_id": "b"}',
        json.dumps({"kind": "spent", "at": "x", "id": "a", "worker": 1, "agent": "a", "step_id": "b"}),
        json.dumps(
            {"kind": "spent", "at": "x", "id": "a", "worker": 1, "agent": "a", "step_id": "b", "input_tokens": 1}
            | {"output_tokens": 1, "cost_usd": "much"}
        ),
        json.dumps(
            {"kind": "spent", "at": "x", "id": ["a"], "worker": 1, "agent": "a", "step_id": "b", "input_tokens": 1}
            | {"output_tokens": 1, "cost_usd": 1}
        ),
        '{"kind": "worker_ended", "at": "x", "number": 5, "end": "", "calls": 0}',
        '{"kind": "worker", "at": "x", "number": 2, "agent": {}, "hooks": false, "step_id": "b"}',
        '{"kind": "worker_ended", "at": "x", "number": 1, "end": [], "calls": 0}',
        '{"kind": "ended", "at": "x", "exit_code": "bad"}',
        '{"kind": ["ended"], "at": "x"}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_a_line_that_is_none_of_ours_counts_as_nothing(record, line):
    record.add("worker", number=1, agent="one", hooks=False, step_id="a")
    with (record._workspace.state_dir / "runs" / "s1" / "events.jsonl").open("ab") as events:
        events.write(line.encode("latin-1") + b"\n")
    record.add("ended", exit_code=0)
    run = record.read()
    assert (len(run.workers), run.exit_code) == (1, 0)
    assert run.totals() == {"input_tokens": 0, "output_tokens": 0, "cost_usd": None}


def test_nothing_is_read_or_removed_through_a_link(project, tmp_path):
    workspace = Workspace(project.root)
    foreign = project.root / "mine"
    foreign.mkdir()
    (foreign / "worker-1.jsonl").write_text("mine")
    os.utime(foreign / "worker-1.jsonl", (0, 0))
    (project.state / "runs").mkdir(parents=True)
    (project.state / "runs" / "s1").symlink_to(foreign)
    remove_old_transcripts(workspace)
    assert (foreign / "worker-1.jsonl").read_text() == "mine"
    assert Record(workspace, "s1").stamp() == (0, 0)


def test_a_record_that_cannot_be_read_is_an_error_and_no_empty_one(record):
    """Otherwise what was spent would be forgotten."""
    record.add("ended", exit_code=0)
    events = record._workspace.state_dir / "runs" / "s1" / "events.jsonl"
    events.unlink()
    events.mkdir()
    with pytest.raises(StorageError, match="cannot be read"):
        record.read()
    assert record.runner() is None


def test_a_look_at_the_lock_keeps_no_runner_from_it_and_believes_the_kernel(record, monkeypatch):
    with record.locked():
        assert record.runner() == os.getpid()
    lock = record._workspace.state_dir / "runs" / "s1" / "lock"
    with lock.open() as looking, monkeypatch.context() as patch:
        patch.setattr("deepwork_run.record.LOCK_SECONDS", PATIENCE)
        fcntl.flock(looking, fcntl.LOCK_SH)
        release = threading.Timer(0.1, fcntl.flock, (looking, fcntl.LOCK_UN))
        release.start()
        with record.locked():
            assert record.runner() == os.getpid()
        release.join()
    with record.locked():
        lock.write_text("1\n")
        assert record.runner() is None, "process 1 holds no lock, whatever stands in the file"


def test_a_transcript_is_bounded_and_private(record):
    with record.transcript(1) as transcript:
        transcript.keep(b"x" * (MAX_TRANSCRIPT - 10))
        transcript.keep(b"y" * 100)
        transcript.keep(b"z")
    content = record.transcript_of(1)
    assert b"the transcript is full" in content
    assert b"yyy" not in content
    assert b"z" not in content.replace(b"deepwork", b"")
    path = record._workspace.state_dir / "runs" / "s1" / "worker-1.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_any_run_there_is_none(project):
    assert records(Workspace(project.root)) == []
    assert Record(Workspace(project.root), "s1").read().workers == []
    assert Record(Workspace(project.root), "s1").runner() is None


@pytest.mark.anyio
async def test_a_record_with_lines_that_were_cut_off_is_read(runs, project):
    run = await runs.run({"one": [works(1, Limited(datetime.now(UTC) + timedelta(hours=1)))]}, waits=False)
    with (project.state / "runs" / run.session_id / "events.jsonl").open("a") as events:
        events.write('{"at": "now", "kind": "sp')
    again = await runs.run({"one": [works(3)]}, run.session_id, waits=False)
    assert (again.code, len(again.record.read().workers)) == (7, 1)
    assert again.record.read().exit_code == 7


@pytest.mark.anyio
async def test_old_transcripts_are_removed(runs, project):
    first = await runs.run({"one": [works(1, Limited(datetime.now(UTC) + timedelta(hours=1)))]}, waits=False)
    transcript = project.state / "runs" / first.session_id / "worker-1.jsonl"
    assert transcript.stat().st_mode & 0o777 == 0o600
    os.utime(transcript, (0, 0))
    await runs.run({"one": [works(3)]}, first.session_id, waits=False)
    assert not transcript.exists()


@pytest.mark.anyio
async def test_records_of_two_vendors_with_one_id_are_two(runs):
    run = await runs.run(
        {
            "one": [works(1, Spent("a", 1, 1, 0.5), Limited(datetime.now(UTC) + timedelta(hours=1)))],
            "two": [works(3, Spent("a", 2, 2))],
        },
        on_limit=OnLimit.SWITCH,
    )
    assert run.record.read().totals() == {"input_tokens": 3, "output_tokens": 3, "cost_usd": 0.5}
    assert run.record.read().totals("two") == {"input_tokens": 2, "output_tokens": 2, "cost_usd": None}
