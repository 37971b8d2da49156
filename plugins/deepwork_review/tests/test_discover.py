"""Which files of a project have rules."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_vendored_ignored_and_foreign_rules_are_left_out_and_vendored_ones_named(repo):
    repo.rule("mine", include=["*.py"])
    repo.rule("theirs", folder="vendor/lib")
    repo.rule("installed", folder="node_modules/lib")
    repo.write(".gitignore", "node_modules\n")
    repo.write("a.py")
    answer = await repo.ask()
    assert "WARNING: rules in folders of other people's code were left out: vendor/lib/.deepreview" in answer
    assert "theirs" not in answer
    assert "installed" not in answer


async def test_a_search_without_git_ends_with_loops_of_links(project, repo_at):
    folder = repo_at(project.root)
    folder.rule("mine", include=["**/*.py"])
    folder.rule("nested", folder="other")
    (project.root / "other" / ".git").mkdir()
    (project.root / "sub").mkdir()
    (project.root / "sub" / "up").symlink_to("..")
    (project.root / "sub" / "self").symlink_to(".")
    async with folder.reviewer() as agent:
        assert [rule["name"] for rule in await agent.configured()] == ["mine"]
