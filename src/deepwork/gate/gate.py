"""The quality gate: who judges which reviews, whether they can, and within which bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import anyio

from deepwork.errors import RunnerUnavailable
from deepwork.gate.judging import Judgement, Judging, KnownVerdict, Proofs
from deepwork.gate.progress import ReviewProgress
from deepwork.gate.snapshot import Snapshot
from deepwork.gate.work import MissingRunner, Reviewers, Routing, Work
from deepwork.models.jobs import Step
from deepwork.paths.workspace import Workspace
from deepwork.ports.proofs import Trial


class Bounds(NamedTuple):
    """The bounds of the reviews of a gate.

    Attributes:
        timeout: Seconds that one external review may take, with up to five files.
        max_attempts: Failed verdicts after which a step is stuck.
        max_failures: Calls in a row without a verdict after which the agent is told to go on otherwise.
        concurrency: How many external reviews run at once.
    """

    timeout: int = 120
    max_attempts: int = 3
    max_failures: int = 3
    concurrency: int = 4


class QualityGate:
    """Has steps judged. It knows nothing of sessions: work comes in, a judgement goes out.

    Attributes:
        cli: The external reviewer of all reviews without a route; None in self-review mode.
        max_inline_files: Up to this many files stand in its payload with their contents.

    Args:
        routing: Who judges which reviews.
        workspace: Where the work is.
        bounds: How long and how often it asks; those of the configuration's defaults if not given.
        proofs: None proves nothing.
        untrusted: Returns the labels of settings that have no effect without trust, to explain a missing verdict.
    """

    def __init__(
        self,
        routing: Routing,
        workspace: Workspace,
        *,
        bounds: Bounds | None = None,
        proofs: Proofs | None = None,
        untrusted: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.cli = routing.default.runner if routing.default.spec.gives_verdicts else None
        self.max_inline_files = routing.default.spec.max_inline_files
        self.timeout, self.max_attempts, self.max_failures, concurrency = bounds or Bounds()
        self._routing = routing
        self.workspace = workspace
        self.proofs = proofs
        self._untrusted = untrusted
        self.slots = anyio.CapacityLimiter(concurrency)

    def reviewers(self, job_name: str, step: Step) -> dict[str, Reviewers]:
        """Choose who judges each review of a step, one after the other, by its `run_each`."""
        return {
            review.run_each: self._routing.reviewers_of(job_name, step.id, review.run_each) for review in step.reviews
        }

    def missing_reviewer(self, job_name: str, steps: Iterable[Step]) -> RunnerUnavailable | None:
        """Return why reviews of these steps can never be held: no plugin offers their reviewer."""
        for step in steps:
            for reviewer in chain.from_iterable(self.reviewers(job_name, step).values()):
                if isinstance(reviewer.runner, MissingRunner):
                    return reviewer.runner.error
        return None

    async def unavailable(self) -> RunnerUnavailable | None:
        """Return why not every review can have a verdict now: a reviewer gives none, or cannot work."""
        for reviewer in self._routing.reviewers:
            if not reviewer.spec.gives_verdicts:
                return RunnerUnavailable(
                    f"reviews go to {reviewer.name!r}, which hands them back to the agent and gives no verdicts",
                    hint="Choose an external reviewer: --external-runner, or quality_gate.runner and "
                    "quality_gate.runners.",
                )
            if error := await reviewer.runner.unavailable(self.workspace.root):
                return error
        return None

    async def broken_reviewers(self) -> dict[str, RunnerUnavailable]:
        """Return why a reviewer that gives verdicts cannot work now, by name."""
        errors = {
            reviewer.name: await reviewer.runner.unavailable(self.workspace.root)
            for reviewer in self._routing.reviewers
            if reviewer.spec.gives_verdicts
        }
        return {name: error for name, error in errors.items() if error}

    async def judge(
        self,
        work: Work,
        copied: Snapshot,
        *,
        known_verdict: KnownVerdict = lambda _: None,
        progress: ReviewProgress | None = None,
    ) -> Judgement:
        """Have everything judged that needs a verdict; if nothing failed, hand back the other reviews.

        All files of the work were copied, if any review gives a verdict. What is known of unchanged files is not
        judged again.
        """
        judging = Judging(self, work, copied, progress or ReviewProgress())
        judgement = await judging.verdicts(known_verdict) if work.gives_verdicts else Judgement(skipped=work.skipped)
        if judgement.broken:
            return replace(judgement, untrusted=tuple(sorted(self._untrusted())))
        if judgement.failed or judgement.changed or judgement.waiting:
            return judgement
        return replace(judgement, handed_back=(*judgement.handed_back, *await judging.hand_back()))

    @asynccontextmanager
    async def tried(self, work: Work) -> AsyncIterator[tuple[Judgement, Sequence[Trial]]]:
        """Have work judged without a session, and yield what came of it, and each reviewer that has judged.

        Raises:
            OutputError: The files are too large to be judged.
            StorageError: They cannot be copied.
        """
        async with Snapshot() as copied:
            for path, _ in work.files if work.gives_verdicts else ():
                copied.add(path, self.workspace.output_roots)
            judgement = await self.judge(work, copied)
            judging = Judging(self, work, copied, ReviewProgress())
            yield judgement, [judging.trial(outcome) for outcome in judgement.outcomes]
