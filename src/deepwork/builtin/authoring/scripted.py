"""A reviewer that judges as an author says, and a rehearsal with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from deepwork.api import (
    CriterionResult,
    Job,
    NeedsWork,
    Passed,
    Rehearsal,
    ReviewRequest,
    ReviewRunner,
    ReviewRunnerSpec,
)
from deepwork.errors import RunnerError
from deepwork.paths.private_folders import private_folder

NAME = "scripted"

# By review (its run_each) and criterion: pass, fail or none.
Verdicts = Mapping[str, Mapping[str, str]]


class ScriptedReviewer(ReviewRunner):
    """Returns scripted verdicts; other criteria pass.

    Attributes:
        verdicts: What it says now.
        asked: The reviews that it was asked for, as step and run_each.
    """

    def __init__(self) -> None:
        self.verdicts: Verdicts = {}
        self.asked: set[tuple[str, str]] = set()

    async def review(self, request: ReviewRequest) -> Passed | NeedsWork:
        """Judge as told.

        Raises:
            RunnerError: It was told to give no verdict.
        """
        answers: dict[str, str] = {}
        for task in request.tasks:
            self.asked.add((request.step_id, task.run_each))
            answers |= {name: self.verdicts.get(task.run_each, {}).get(name, "pass") for name in task.criteria}
        silent = [name for name, verdict in answers.items() if verdict == "none"]
        if silent:
            raise RunnerError(f"it says nothing on {', '.join(map(repr, silent))}")
        results = tuple(
            CriterionResult(criterion=name, passed=verdict == "pass", feedback=f"It was told to {verdict} this.")
            for name, verdict in answers.items()
        )
        failed = [name for name, verdict in answers.items() if verdict == "fail"]
        if failed:
            questions = "; ".join(f"{name}: {request.criteria[name]}" for name in failed)
            return NeedsWork(f"Not met: {questions}", results)
        return Passed(criteria=results)


@asynccontextmanager
async def rehearsed(job: Job, reviewer: ReviewRunner) -> AsyncIterator[Rehearsal]:
    """Open a rehearsal of a job in a private folder, which goes with it."""
    # `judges_project`: it is asked at every report, because what it was told may have changed.
    spec = ReviewRunnerSpec(name=NAME, create=lambda: reviewer, max_inline_files=0, judges_project=True)
    with private_folder() as folder:
        rehearsal = Rehearsal(job, folder, spec)
        try:
            yield rehearsal
        finally:
            await rehearsal.close()


def write_file(folder: Path, path: str, text: str) -> None:
    """Write a file of a rehearsal, with its folders."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8", "replace"))
