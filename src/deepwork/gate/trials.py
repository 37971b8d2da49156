"""Asks reviewers about broken work, of which nothing reaches the project."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread

from deepwork.errors import MountsRefused, RunnerError
from deepwork.gate.counterfactuals import Broken, Counterfactual, contents_of, written
from deepwork.gate.fingerprints import digest_of, digests
from deepwork.gate.kept import KeptProofs
from deepwork.gate.progress import ReviewProgress
from deepwork.gate.proof import Subject
from deepwork.gate.snapshot import Snapshot
from deepwork.gate.work import Evaluation, Work
from deepwork.models.reviews import Verdict


class Judge(Protocol):
    """Asks the reviewer of an evaluation, within so many seconds; `seen` is what a program sees in the project."""

    async def __call__(
        self,
        work: Work,
        copied: Broken,
        evaluation: Evaluation,
        *,
        seconds: float | None = None,
        seen: Path | None = None,
    ) -> Verdict:
        """Return the verdict."""


class Trials:
    """Has the reviewers of a project judge counterfactuals.

    Args:
        judge: Asks a reviewer.
        root: The project.
        slots: How many are asked at once.
    """

    def __init__(self, judge: Judge, root: Path, slots: anyio.CapacityLimiter) -> None:
        self._judge = judge
        self._root = root
        self._slots = slots
        self._has_mounts = True

    async def subject(
        self, work: Work, copied: Snapshot, evaluation: Evaluation, seconds: float, progress: ReviewProgress
    ) -> Subject:
        """Return the gate and the work of an evaluation as they are tried.

        Args:
            work: What was submitted.
            copied: Its honest copies.
            evaluation: Which reviewer judges what of it.
            seconds: How long that took.
            progress: Told of every run.
        """
        reviewer, paths = evaluation.reviewer, [*evaluation.task.files]
        identity = await reviewer.runner.identity(self._root)
        name = f"{evaluation.name} by {reviewer.name}, broken on purpose"
        number = 0

        async def ask(counterfactual: Counterfactual, seconds: float) -> Verdict:
            nonlocal number
            number += 1
            progress.total += 1
            progress.begin(name)
            try:
                async with reviewer.slots, self._slots:
                    return await self._asked(work, copied, evaluation, counterfactual, seconds, number)
            finally:
                progress.end(name)

        contents = await to_thread.run_sync(contents_of, copied.root, paths)
        inputs = digests(copied.originals, work.inputs)
        criteria = (evaluation.task.run_each, sorted(evaluation.task.criteria.items()), evaluation.task.guidance)
        return Subject(
            reviewer.name,
            contents,
            reviewer.must_fail,
            ask,
            seconds,
            seed=evaluation.subject,
            place=_place(work, evaluation),
            key=digest_of(reviewer.name, identity, criteria, inputs) if identity else None,
            holds=not reviewer.judges_project,
        )

    async def _asked(
        self,
        work: Work,
        copied: Snapshot,
        evaluation: Evaluation,
        counterfactual: Counterfactual,
        seconds: float,
        number: int,
    ) -> Verdict:
        in_project = evaluation.reviewer.judges_project
        paths = evaluation.task.files
        project = self._root if in_project else None
        folder = written(counterfactual, copied.root, paths, number=number, project=project)
        broken = await to_thread.run_sync(folder.__enter__)
        try:
            seen = broken.changes if in_project or self._has_mounts else None
            try:
                return await self._judge(work, broken, evaluation, seconds=seconds, seen=seen)
            except RunnerError as error:
                if in_project or seen is None or not isinstance(error.__cause__, MountsRefused):
                    raise
                # The program is in a copy anyway; the mounts only keep what it writes out of the project.
                self._has_mounts = False
                return await self._judge(work, broken, evaluation, seconds=seconds)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(folder.__exit__, None, None, None)


def keep_refused(kept: KeptProofs, work: Work, copied: Snapshot, evaluations: Iterable[Evaluation]) -> None:
    """Keep what repeatable gates have refused: they are tried on it once they pass the work."""
    for evaluation in evaluations:
        if evaluation.reviewer.repeatable:
            kept.refuse(_place(work, evaluation), contents_of(copied.root, evaluation.task.files))


def _place(work: Work, evaluation: Evaluation) -> str:
    """Return where the work is kept that a gate has refused in this review."""
    return digest_of(work.session_id, work.step.id, evaluation.reviewer.name, evaluation.task.run_each)
