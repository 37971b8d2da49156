"""The projects in which servers are measured. Sessions in them come from the real engine and the real store."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio

from bench.contestants import OURS, Launcher
from deepwork.api import Session, SessionStatus, Workspace
from deepwork.builtin.json_store.store import JsonStore
from deepwork.testing import DeepworkProject, step

STEPS = 18
JOB = "long"
WIDE_JOB = "job_0000"
INSTRUCTIONS = "Read what is there. Write down what you have found, with the places where you have found it.\n" * 8


def step_ids() -> list[str]:
    """Name the steps of the long job."""
    return [f"s{number:03}" for number in range(1, STEPS + 1)]


def make_project(root: Path) -> Path:
    """Make a project with one job of one workflow, and all files that its steps put out."""
    project = DeepworkProject(root)
    ids = step_ids()
    project.write_job(JOB, [step(step_id) for step_id in ids])
    for step_id in ids:
        project.write(project.jobs / JOB / "steps" / f"{step_id}.md", INSTRUCTIONS)
        project.write(f"{step_id}.md", f"# {step_id}\n")
    return root


def add_jobs(root: Path, count: int) -> None:
    """Add jobs of three workflows with six steps each."""
    if not count:
        return
    project = DeepworkProject(root)
    ids = step_ids()
    flows = {f"flow_{number}": ids[6 * number : 6 * number + 6] for number in range(3)}
    steps = [step(step_id, instructions_file="steps/all.md") for step_id in ids]
    first = project.write_job(WIDE_JOB, steps, flows)
    text = (first / "job.yml").read_text()
    for number in range(1, count):
        name = f"job_{number:04}"
        folder = first.with_name(name)
        project.write(folder / "steps" / "all.md", INSTRUCTIONS)
        project.write(folder / "job.yml", text.replace(WIDE_JOB, name))


def add_sessions(root: Path, launcher: Launcher, *, finished: int, active: int) -> None:
    """Add sessions: one of each kind is led by a real server, the others are copies, saved by the store."""
    ids = step_ids()
    with launcher.started(OURS[0], root) as server:
        finished_session = server.start_workflow(JOB)
        for step_id in ids:
            server.finish(finished_session.session_id, step_id)
        active_session = server.start_workflow(JOB)
        for step_id in ids[:5]:
            server.finish(active_session.session_id, step_id)

    async def copy() -> None:
        async with JsonStore(Workspace(root)) as store:
            for session_id, count in ((finished_session.session_id, finished), (active_session.session_id, active)):
                original = await store.load(session_id)
                assert original
                for number in range(count - 1):
                    await store.save(_aged(original, number), expected=None)

    anyio.run(copy)


def _aged(original: Session, hours: int) -> Session:
    then = (datetime.now(UTC) - timedelta(hours=hours + 1)).isoformat(timespec="microseconds")
    over = original.status is SessionStatus.COMPLETED
    assert original.standing
    return original.model_copy(
        update={
            "session_id": uuid.uuid4().hex,
            "standing": replace(original.standing, revision=1),  # as the store saves it
            "started_at": then,
            "updated_at": then,
            "completed_at": then if over else None,
        }
    )


def copied(root: Path, name: str) -> Path:
    """Copy a project beside itself."""
    return Path(shutil.copytree(root, root.with_name(name), symlinks=True))


def session_bytes(root: Path) -> int:
    """Return the mean size of a session file, or a usual one without any."""
    files = [*(root / ".deepwork" / "tmp").glob("session_*.json")]
    return sum(file.stat().st_size for file in files) // len(files) if files else 20_000


def durable_replace(folder: Path, content: bytes) -> float:
    """Replace a file so that it survives a power cut, and return the seconds."""
    start = time.perf_counter()
    beside = folder / "replaced.tmp"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.write(descriptor, content)
    os.fsync(descriptor)
    os.close(descriptor)
    os.rename(beside, folder / "replaced")
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(directory)
    os.close(directory)
    return time.perf_counter() - start
