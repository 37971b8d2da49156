"""Passes that an earlier release has recorded still count in this one."""

from __future__ import annotations

import subprocess

import pytest

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _repository(old_state):
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=old_state.project.root, check=True)


async def test_a_review_that_has_passed_is_left_out_until_its_file_changes(old_state):
    root = old_state.project.root
    async with old_state.project.agent(tools=["review"]) as agent:
        assert old_state.cases["review"] not in await agent.text("get_review_instructions", files=["draft.md"])
        assert "texts--web.md" in await agent.text("get_review_instructions", files=["draft.md", "web.md"])
        (root / "draft.md").write_text("Other words.\n")
        assert "texts--draft.md" in await agent.text("get_review_instructions", files=["draft.md"])
