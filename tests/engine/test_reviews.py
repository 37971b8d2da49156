"""What a reported step reads: a judged file as often as its safety needs, and the job once."""

from __future__ import annotations

import builtins
import hashlib
import io
import os
from collections import Counter

import pytest

from deepwork.api import Passed
from deepwork.gate import fingerprints
from deepwork.testing import step

pytestmark = pytest.mark.anyio

CONTENT = b"counted work\n"


@pytest.fixture
def reads(monkeypatch):
    """Count by file name what is opened for reading, and as `hashes` how often exactly `CONTENT` is hashed."""
    counted = Counter()
    real_open, real_io_open, real_sha256 = os.open, io.open, hashlib.sha256

    def count(path):
        if not isinstance(path, int):
            counted[os.path.basename(os.fsdecode(path))] += 1

    def open_descriptor(path, flags, *arguments, **options):
        if not flags & (os.O_WRONLY | os.O_RDWR):
            count(path)
        return real_open(path, flags, *arguments, **options)

    def open_file(path, mode="r", *arguments, **options):
        if "r" in mode:
            count(path)
        return real_io_open(path, mode, *arguments, **options)

    class Sha256:
        def __init__(self, data=b"", **options):
            self._real, self._data = real_sha256(data, **options), bytes(data)

        def update(self, data):
            self._data += bytes(data)
            self._real.update(data)

        def hexdigest(self):
            counted["hashes"] += self._data == CONTENT
            return self._real.hexdigest()

        def __getattr__(self, name):
            return getattr(self._real, name)

    monkeypatch.setattr(os, "open", open_descriptor)
    monkeypatch.setattr(io, "open", open_file)
    monkeypatch.setattr(builtins, "open", open_file)
    monkeypatch.setattr(fingerprints.hashlib, "sha256", Sha256)
    return counted


async def finish_counted(project, server, reads):
    async with project.agent(server) as agent:
        await agent.start()
        project.write("a.md", CONTENT.decode())
        # Written anew, so that it is read again and not taken from the cache.
        job = project.jobs / "demo" / "job.yml"
        job.write_text(job.read_text())
        reads.clear()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "next_step"


async def test_a_judged_output_is_hashed_three_times_and_opened_four_times_and_its_job_is_read_once(
    reviewed, judge, served, reads
):
    """Once for check and copy, once for the reviewer; then the file and its copy, to see that both are unchanged."""
    await finish_counted(reviewed, served(judge(lambda _: Passed())), reads)
    assert (reads["hashes"], reads["a.md"], reads["job.yml"]) == (3, 4, 1)


async def test_an_output_without_review_is_opened_and_hashed_once_and_its_job_is_read_once(project, reads):
    project.write_job(steps=[step("a"), step("b")])
    await finish_counted(project, project.server(), reads)
    assert (reads["hashes"], reads["a.md"], reads["job.yml"]) == (1, 1, 1)
