"""A reviewer reads a private copy of the judged files, and the verdict holds for the bytes of that copy."""

from __future__ import annotations

import os
import resource
import stat
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from deepwork.api import NeedsWork, Passed
from deepwork.errors import StorageError
from deepwork.gate import snapshot
from deepwork.gate.fingerprints import fingerprint
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
NESTED = {"a.md": "work/a.md"}


def strict(request):
    """Open the files as a reviewer with tools does, and pass what is GOOD."""
    texts = [(request.files_root / path).read_text() for path in request.files]
    return Passed() if texts and all("GOOD" in text for text in texts) else NeedsWork("It is not GOOD")


def exchanged(first, second):
    """Let two files, folders or links change places."""
    aside = first.with_name("aside")
    os.rename(first, aside)
    os.rename(second, first)
    os.rename(aside, second)


async def test_a_reviewer_gets_copies_that_nobody_else_can_open_and_that_are_gone_afterwards(reviewed, judge, served):
    facts = {}

    def look(request):
        copy = request.snapshot / "a.md"
        modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (request.snapshot, copy)]
        facts.update(root=request.snapshot, text=copy.read_text(), modes=modes, names=os.listdir(request.snapshot))
        return Passed()

    async with reviewed.agent(served(judge(look))) as agent:
        await agent.start()
        await agent.finish(DONE)
    assert not facts.pop("root").exists()
    assert facts == {"text": "The work\n", "modes": [0o700, 0o400], "names": ["a.md"]}


async def test_inputs_and_files_outside_of_the_project_are_copied_too(project, judge, served, tmp_path, monkeypatch):
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "r.md").write_text("GOOD report\n")
    monkeypatch.setenv("DEEPWORK_ALLOWED_OUTPUT_ROOTS", str(reports))
    inputs = [{"file": "a.md", "from_step": "a"}]
    last = step("b", outputs={"r": output()}, reviews=[review("r")], inputs=inputs, dependencies=["a"])
    project.write_job(steps=[step("a"), last])
    project.write("a.md", "what was given\n")
    texts = []

    def look(request):
        texts.extend((request.snapshot / path).read_text() for path in ("a.md", *request.files))
        return strict(request)

    async with project.agent(served(judge(look))) as agent:
        await agent.start()
        await agent.finish(DONE)
        assert (await agent.finish({"r": str(reports / "r.md")}))["status"] == "workflow_complete"
    assert texts == ["what was given\n", "GOOD report\n"]


@pytest.mark.parametrize("is_self_review", [False, True])
async def test_an_agent_is_told_of_input_files_that_reviewers_did_not_see(project, judge, served, is_self_review):
    inputs = [{"file": "a.md", "from_step": "a"}]
    project.write_job(steps=[step("a"), step("b", reviews=[review()], inputs=inputs, dependencies=["a"]), step("c")])
    for name in ("a.md", "b.md"):
        project.write(name, f"Work of {name}\n")
    server = project.server() if is_self_review else served(judge(lambda _: Passed()))
    async with project.agent(server) as agent:
        await agent.start()
        assert "notices" not in await agent.finish(DONE)
        (project.root / "a.md").unlink()
        reply = await agent.finish({"b.md": "b.md"})
    assert reply["status"] == ("needs_work" if is_self_review else "next_step")
    [notice] = reply["notices"]
    assert notice.startswith("Reviewed without input files that are missing or cannot be read: 'a.md'.")


@pytest.fixture
def two_folders(project):
    """A project with a bad output in `work`, and a good one of the same name in `good`."""
    project.write_job(steps=[step("a", reviews=[review("a.md")]), step("b")])
    project.write("work/a.md", "bad\n")
    project.write("good/a.md", "GOOD\n")
    return project


async def test_a_folder_that_is_exchanged_for_the_time_of_a_review_does_not_make_bad_work_pass(
    two_folders, judge, served
):
    work, good = two_folders.root / "work", two_folders.root / "good"

    def with_exchange(request):
        exchanged(work, good)
        try:
            return strict(request)
        finally:
            exchanged(work, good)

    async with two_folders.agent(served(judge(with_exchange))) as agent:
        await agent.start()
        assert (await agent.finish(NESTED))["status"] == "needs_work"


@pytest.mark.parametrize("is_link", [False, True], ids=["folder", "link"])
async def test_a_folder_that_is_good_only_while_it_is_copied_does_not_pass(
    two_folders, judge, served, history, is_link
):
    """The attempt that is saved tells an agent when the copy is made; afterwards it puts the bad folder back."""
    work, good = two_folders.root / "work", two_folders.root / "good"
    exchanged(work, good)

    def put_back(request):
        if is_link:
            os.rename(work, two_folders.root / "bad")
            work.symlink_to(good)
        else:
            exchanged(work, good)
        return strict(request)

    async with two_folders.agent(served(judge(put_back))) as agent:
        await agent.start()
        reply = await agent.finish(NESTED)
    assert reply["status"] == "needs_work"
    assert history("verdict")[0]["changed"] == ["work/a.md"]


async def test_a_reviewer_that_changes_what_it_judges_gives_no_verdict_that_holds(reviewed, judge, served, history):
    def tamper(request):
        copy = request.snapshot / "a.md"
        copy.unlink()
        copy.write_text("GOOD\n")
        return Passed()

    async with reviewed.agent(served(judge(tamper))) as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "needs_work"
    assert history("verdict")[0]["changed"] == ["a.md"]


async def test_a_file_larger_than_any_disk_is_refused_and_not_read(reviewed, judge, served, stored):
    os.truncate(reviewed.root / "a.md", 1 << 40)
    runner = judge(strict)
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        refusal = await agent.refused("finished_step", outputs=DONE)
    assert "With 'a.md', the files that are to be judged have more than 1,073,741,824 bytes" in refusal
    assert runner.requests == []
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_without_room_for_the_copy_nothing_is_judged_and_no_attempt_counts(
    reviewed, judge, served, stored, monkeypatch, tmp_path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    async with reviewed.agent(served(judge(strict))) as agent:
        await agent.start()
        refusal = await agent.refused("finished_step", outputs=DONE)
    assert "could not be copied: No such file or directory; nothing was judged" in refusal
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_a_copy_that_fails_in_the_middle_is_not_taken_for_a_file_that_cannot_be_read(
    reviewed, judge, served, stored
):
    """A copy larger than the process may write stands for a full disk."""
    reviewed.write("a.md", "GOOD\n" * 200_000)
    runner = judge(strict)
    limit, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    async with reviewed.agent(served(runner)) as agent:
        await agent.start()
        resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard_limit))
        try:
            refusal = await agent.refused("finished_step", outputs=DONE)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard_limit))
    assert "could not be copied: File too large; nothing was judged" in refusal
    assert runner.requests == []
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_a_copy_that_a_thread_still_makes_for_a_cancelled_call_is_removed_too(project, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    project.write("a.md")
    opened, goes_on = threading.Event(), threading.Event()

    def slow(*arguments):
        opened.set()
        goes_on.wait()
        return fingerprint(*arguments)

    monkeypatch.setattr(snapshot, "fingerprint", slow)
    copied = snapshot.Snapshot()
    with ThreadPoolExecutor() as threads, anyio.fail_after(240):
        copying = threads.submit(copied.add, "a.md", [project.root])
        await anyio.to_thread.run_sync(opened.wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(copied.remove)
            await anyio.lowlevel.checkpoint()
            goes_on.set()
        copying.result()
    assert [*tmp_path.glob("deepwork-private-*")] == []
    with pytest.raises(StorageError, match="no longer needed"):
        copied.add("b.md", [project.root])
    assert [*tmp_path.glob("deepwork-private-*")] == []
