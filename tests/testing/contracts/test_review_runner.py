"""The runners of the core, by the kit and nothing weaker."""

from __future__ import annotations

import pytest

from deepwork.api import open_context
from deepwork.builtin.reviewers.self_review import SelfReview
from deepwork.testing import ReviewRunnerContract, ScriptedRunner


def context(root):
    return open_context("reviewers", root)


class TestSelfReview(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self, project_root):
        return SelfReview(context(project_root))

    @pytest.fixture
    async def broken_runner(self, project_root):
        runner = SelfReview(context(project_root))
        (project_root / ".deepwork").write_text("a file where the folder should be")
        return runner


class TestScriptedRunner(ReviewRunnerContract):
    @pytest.fixture
    async def runner(self):
        return ScriptedRunner()
