from __future__ import annotations

import json
import os

import anyio
import pytest

from deepwork.api import open_context

pytestmark = pytest.mark.anyio


def user_dir(repo):
    """Return the folder of passes: the user's, not the project's."""
    return open_context("review", repo.root).user_dir


async def test_a_pass_says_who_when_and_what_was_found(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    async with repo.reviewer() as agent:
        (review_id,) = review_ids(await agent.instructions())
        reply = await agent.text("mark_review_as_passed", review_id=review_id, summary="All fine")
        assert reply == f"Review {review_id!r} is recorded as passed."
    record = json.loads((user_dir(repo) / f"{review_id}.passed").read_text())
    assert record["by"].startswith("mcp ")
    assert record["summary"] == "All fine"
    assert record["at"].endswith("+00:00")


BAD_IDS = ["", "..", ".", "/etc/passwd", "../x", "a\nb", "x" * 5000, "rule--a.py--000000000000", "a\0--000000000000"]


@pytest.mark.parametrize("review_id", BAD_IDS)
async def test_only_ids_that_were_issued_can_be_marked(repo, review_id):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    await repo.ask()
    async with repo.reviewer() as agent:
        refused = await agent.refused("mark_review_as_passed", review_id=review_id)
    assert refused.startswith(f"no review {review_id[:100]!r} was issued here\n")
    assert not list(user_dir(repo).rglob("*.passed"))


async def test_a_review_whose_file_has_changed_since_cannot_be_marked(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    async with repo.reviewer() as agent:
        (review_id,) = review_ids(await agent.instructions())
        repo.write("a.py", "changed\n")
        refused = await agent.refused("mark_review_as_passed", review_id=review_id)
    assert refused.startswith(f"'a.py' has changed since review {review_id!r} was issued; nothing was recorded")


@pytest.mark.parametrize("content", ["", "the pass of somebody else"])
async def test_a_pass_that_a_repository_brings_does_not_count(repo, review_ids, content):
    """F5 of the attacks: a branch with a backdoor brings the record that its review has passed."""
    repo.rule(include=["*.py"])
    repo.write("a.py")
    async with repo.reviewer() as agent:
        (review_id,) = review_ids(await agent.instructions())
        await agent.text("mark_review_as_passed", review_id=review_id, summary="All fine")
    (passed,) = user_dir(repo).glob("*.passed")
    for name in (passed.name, f"{review_id}.json"):
        repo.write(f".deepwork/tmp/review_instructions/{name}", content and (user_dir(repo) / name).read_text())
        (user_dir(repo) / name).unlink()
    assert review_ids(await repo.ask()) == [review_id]


async def test_a_review_that_a_repository_says_was_issued_cannot_be_marked(repo, review_ids):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    (review_id,) = review_ids(await repo.ask())
    issued = user_dir(repo) / f"{review_id}.json"
    repo.write(f".deepwork/tmp/review_instructions/{issued.name}", issued.read_text())
    issued.unlink()
    async with repo.reviewer() as agent:
        refused = await agent.refused("mark_review_as_passed", review_id=review_id)
    assert "was issued here" in refused


async def test_agents_side_by_side_never_remove_each_others_instructions(repo, review_ids):
    repo.rule(include=["*.py"])
    for number in range(20):
        repo.write(f"{number}.py")
    answers = []

    async with repo.reviewer() as agent, anyio.create_task_group() as tasks:
        for number in range(10):

            async def ask(number=number):
                answers.append(await agent.instructions(files=[f"{number}.py", f"{number + 10}.py"]))

            tasks.start_soon(ask)
    for answer in answers:
        for review_id in review_ids(answer):
            text = (repo.state / "review_instructions" / f"{review_id}.md").read_text()
            assert f"`{review_id}`" in text
    assert len(list(repo.state.rglob("*.md"))) == 20


def test_old_instructions_are_removed_and_passes_are_not(repo):
    folder = repo.state / "review_instructions"
    old, young = folder / "x--a--000000000000.md", folder / "x--b--000000000000.md"
    old_pass = user_dir(repo) / "x--a--000000000000.passed"
    for file in (old, young, old_pass):
        repo.write(file)
    for file in (old, old_pass):
        os.utime(file, (0, os.stat(file).st_mtime - 8 * 86400))
    assert repo.run("reviews", "clean").stdout == "1 files removed.\n"
    assert [*folder.iterdir(), *user_dir(repo).iterdir()] == [young, old_pass]
    assert repo.run("reviews", "clean", "--older-than", "0", "--passes").stdout == "2 files removed.\n"


async def test_a_folder_that_is_a_link_out_of_the_project_is_refused_and_nothing_is_removed(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious.md").write_text("precious")
    os.utime(outside / "precious.md", (0, 0))
    repo.rule(include=["*.py"])
    repo.write("a.py")
    (repo.root / ".deepwork" / "tmp").mkdir(parents=True)
    (repo.root / ".deepwork" / "tmp" / "review_instructions").symlink_to(outside)
    assert "could not be written" in await repo.refusal()
    assert os.listdir(outside) == ["precious.md"]
