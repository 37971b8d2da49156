"""An agent that comes back is told what is no longer as it was."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture
def git(project):
    def git(*arguments):
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=project.root, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    return git


async def test_branch_commit_and_changed_files_are_told_and_nothing_where_nothing_has_changed(project, git):
    project.write_job("notes")
    async with project.agent() as agent:
        begin = await agent.start("notes")
        for name in ("a.md", "b.md"):
            project.write(name, "as completed")
        await agent.finish({"a.md": "a.md"})
        named = {"session_id": begin["session_id"]}
        assert "## Changed since" not in await agent.where(**named)
        git("checkout", "-q", "-b", "elsewhere")
        git("commit", "-q", "--allow-empty", "-m", "second")
        project.write("a.md", "as somebody has changed it")
        text = await agent.where(**named)
        assert "- The branch is elsewhere; it was main." in text
        assert "- The commit is " in text
        assert "- a.md of step 'a' is not what was completed." in text
        (project.root / "a.md").unlink()
        assert "- a.md of step 'a' is gone." in await agent.where(**named)


async def test_a_large_file_is_accepted_without_a_digest_and_no_change_of_it_is_told(project, stored):
    """Reading it would take longer than all else that a report costs."""
    project.write_job("notes")
    async with project.agent() as agent:
        begin = await agent.start("notes")
        with (project.root / "a.md").open("wb") as file:
            file.truncate(4 * 1024 * 1024 + 1)
        await agent.finish({"a.md": "a.md"})
        assert stored()["step_progress"]["a"]["digests"] == {}
        project.write("a.md", "small now")
        assert "Changed since" not in await agent.where(session_id=begin["session_id"])


async def test_outside_of_a_repository_there_is_no_branch_to_tell_of(project):
    project.write_job("notes")
    async with project.agent() as agent:
        begin = await agent.start("notes")
        assert "Changed since" not in await agent.where(session_id=begin["session_id"])
