"""Which reviews are due, and which have passed."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_a_tripwire_has_all_changed_files_reviewed_together(repo, reviewed):
    repo.rule(strategy="all_changed_files", include=["*.lock"])
    repo.write("a.py")
    assert "No rules matched" in await repo.ask()
    repo.write("x.lock")
    answer = await repo.ask()
    assert 'name: "rule review of 3 files"' in answer
    assert reviewed(repo.root, answer) == [".deepreview", "a.py", "x.lock"]


async def test_the_reply_counts_the_reviews_that_have_passed(repo):
    repo.rule(include=["*.py"])
    repo.write("a.py")
    repo.write("b.py")
    async with repo.reviewer() as agent:
        await agent.pass_all(files=["a.py"])
        answer = await agent.instructions()
        assert 'name: "rule review of b.py"' in answer
        assert answer.endswith("\n1 review has passed and is left out: nothing that matters has changed since.\n")
        await agent.pass_all()
        assert await agent.instructions() == (
            "No review tasks to execute. 2 reviews have passed and are left out: nothing that matters has changed "
            "since."
        )
