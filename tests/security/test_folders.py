"""Threats T7 to T9: paths, links and special files by which a repository or an agent could reach out of the project.

What single paths may be is shown in `tests/engine/test_outputs.py` (every hostile path at every place that takes one)
and `tests/test_workspace.py`. Here the ground moves: folders become links while calls are served.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress

import pytest

from deepwork import hookimpl
from deepwork.api import Passed, ReviewRunner, ReviewRunnerSpec
from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.testing import Refused, review, step
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

SECRET = "what lies outside"
SWAPS = 1000


@pytest.fixture
def outside(project, tmp_path):
    """Make a folder beside the project, with everything that a call would look for."""
    outside = tmp_path / "outside"
    project.write(outside / "a.md", SECRET)
    project.write(outside / "only_outside.md", SECRET)
    texts = {"common_job_info_provided_to_all_steps_at_runtime": SECRET}
    project.write_job("demo", [step("a")], folder=outside / "jobs", **texts)
    for file in (outside / "jobs").rglob("*.md"):
        project.write(file, SECRET)
    project.write(outside / "state" / "precious.md", SECRET)
    return outside


def everything(folder):
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else None for path in folder.rglob("*")}


class Reader(ReviewRunner):
    """Passes everything, and keeps what it was given to read."""

    def __init__(self):
        self.read = []

    async def review(self, request):
        self.read.append(request.payload)
        return Passed()


def plugins_with(runner):
    class Runners:
        @hookimpl
        def deepwork_review_runners(self):
            yield ReviewRunnerSpec(name="reader", create=lambda: runner, max_inline_files=5)

    return PluginManager(candidates=[*installed(), Candidate("readers", "readers-dist", "1.0", Runners)])


async def calls_until(swaps, call):
    """Call until there were enough swaps, and enough calls of both kinds; give the answers and the refusals."""
    answers, refusals = [], []
    deadline = time.monotonic() + PATIENCE
    while (swaps() < SWAPS or not answers or not refusals) and time.monotonic() < deadline:
        try:
            answers.append(await call())
        except Refused as error:
            refusals.append(str(error))
    assert answers
    assert refusals
    assert not [text for text in refusals if SECRET in text or "Errno" in text or "internal error" in text]
    return answers, refusals


async def test_no_reviewer_reads_outside_while_the_folder_of_an_output_is_swapped(project, outside, swapping):
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("work/a.md", "inside")
    reader = Reader()
    options = {"plugins": plugins_with(reader), "external_runner": "reader", "state_store": "memory"}
    async with project.agent(**options) as agent:

        async def call():
            await agent.start()
            return await agent.finish({"a.md": "work/a.md"})

        with swapping(project.root / "work", outside) as swaps:
            await calls_until(swaps, call)
    assert any("inside" in text for text in reader.read)
    assert not any(SECRET in text for text in reader.read)


async def test_no_file_outside_is_taken_for_an_output_while_its_folder_is_swapped(project, outside, swapping):
    project.write_job()
    project.write("work/a.md")
    async with project.agent(state_store="memory") as agent:
        await agent.start()
        with swapping(project.root / "work", outside) as swaps:
            texts = set()
            while swaps() < SWAPS or len(texts) < 2:
                texts.add(await agent.refused("finished_step", outputs={"a.md": "work/only_outside.md"}))
    assert not any(SECRET in text for text in texts)


async def test_no_job_and_no_instructions_are_read_outside_while_the_folder_of_jobs_is_swapped(
    project, outside, swapping
):
    project.write_job()
    async with project.agent(state_store="memory") as agent:
        with swapping(project.jobs, outside / "jobs") as swaps:
            answers, _ = await calls_until(swaps, agent.start)
    assert not [answer for answer in answers if SECRET in str(answer)]


async def test_nothing_outside_is_read_written_or_removed_while_the_state_folder_is_swapped(project, outside, swapping):
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    project.state.mkdir(parents=True)
    before = everything(outside)
    async with project.agent() as agent:

        async def call():
            began = await agent.start()
            with suppress(Refused):
                await agent.finish({"a.md": "a.md"}, session_id=began["session_id"])
                await agent.call("abort_workflow", explanation="x", session_id=began["session_id"])

        with swapping(project.state, outside / "state") as swaps:
            await calls_until(swaps, call)
    assert everything(outside) == before


# At the start ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", [".deepwork", ".deepwork/tmp"])
@pytest.mark.parametrize("transport", [(), ("--transport", "http", "--port", "0")])
def test_a_state_folder_that_leads_out_keeps_the_server_from_starting(project, outside, serve, link, transport):
    before = everything(outside)
    place = project.root / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside / "state")
    process = serve(*transport)
    _, log = process.communicate(timeout=100)
    assert process.returncode == 1
    assert re.match(r"Error: .*\.deepwork.* lies outside of the project\n", log)
    assert everything(outside) == before


def test_a_state_folder_that_stays_inside_may_be_a_link(project, serve):
    (project.root / "elsewhere").mkdir()
    project.state.parent.mkdir()
    project.state.symlink_to("../elsewhere")
    process = serve()
    _, log = process.communicate(timeout=100)
    assert (process.returncode, log) == (0, "")


# Special files ---------------------------------------------------------------------------------------------------


@pytest.fixture
def special(project):
    """Put special files and links where calls look for files; return their paths."""
    os.mkfifo(project.root / "fifo")
    (project.root / "zero").symlink_to("/dev/zero")
    (project.root / "folder").mkdir()
    (project.root / "loop").symlink_to("loop")
    return ["fifo", "zero", "folder", "loop", "", "/dev/zero", "/dev/stdin", "."]


async def test_a_server_among_special_files_answers_at_once(project, special):
    """A FIFO waits for a writer and /dev/zero never ends: a careless reader would hang for ever."""
    project.write_job()
    for name in ("job.yml", "steps/a.md"):
        job = project.write_job(f"bad_{name[:3]}")
        (job / name).unlink()
        os.mkfifo(job / name)
    async with project.stdio_agent() as agent:
        listed = await agent.call("get_workflows")
        await agent.refused("start_workflow", goal="g", job_name="bad_job", workflow_name="main")
        text = await agent.refused("start_workflow", goal="g", job_name="bad_ste", workflow_name="main")
        assert "not a regular file" in text
        await agent.start()
        texts = [await agent.refused("finished_step", outputs={"a.md": path}) for path in special]
    assert {"demo", "bad_ste"} <= {job["name"] for job in listed["jobs"]}
    assert ["bad_job" in str(listed["errors"]), len(listed["errors"])] == [True, 1]
    assert all(text.startswith("Output 'a.md': ") for text in texts)
