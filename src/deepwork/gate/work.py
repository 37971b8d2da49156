"""What the gate is given to judge, who judges which of it, and how it is divided among them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

import anyio

from deepwork.errors import RunnerUnavailable
from deepwork.gate.fingerprints import Fingerprints, digest_of, digests
from deepwork.models.jobs import FileInput, Review, Step
from deepwork.models.outputs import KINDS, ListedFile, Outputs, files_of
from deepwork.models.reviews import ReviewRequest, ReviewTask, Verdict
from deepwork.ports.records import ReviewRunnerSpec
from deepwork.ports.review_runner import ReviewRunner

WHOLE_STEP = "step"


class MissingRunner(ReviewRunner):
    """Stands for a runner that no plugin offers, so that workflows without reviews can still run."""

    def __init__(self, error: RunnerUnavailable) -> None:
        self.error = error

    async def review(self, request: ReviewRequest) -> Verdict:
        """Raise the error."""
        raise self.error

    async def unavailable(self, project_root: Path) -> RunnerUnavailable | None:
        """Return the error."""
        return self.error


class Reviewer:
    """A runner, with what its plugin declares of it."""

    def __init__(self, spec: ReviewRunnerSpec) -> None:
        self.spec = spec
        self.name = spec.name
        self.runner = spec.create()
        self.slots = anyio.CapacityLimiter(spec.concurrency or math.inf)


def missing_reviewer(name: str, left_out: str) -> Reviewer:
    """Make the stand-in for a runner that no plugin offers; the error ends with what was left out."""
    error = RunnerUnavailable(
        f"there is no reviewer {name!r}{left_out}",
        hint="Ask the user to load it again, to choose another one (--external-runner or quality_gate.runner), or to "
        "switch the quality gate off.",
    )
    return Reviewer(ReviewRunnerSpec(name=name, create=lambda: MissingRunner(error), max_inline_files=0))


# Those who judge a review one after the other.
Reviewers = tuple[Reviewer, ...]


@dataclass(frozen=True)
class Route:
    """Sends reviews to reviewers, who judge one after the other; what is None fits all."""

    reviewers: Reviewers
    job: str | None = None
    step: str | None = None
    review: str | None = None

    def fits(self, job: str, step: str, review: str) -> bool:
        """True if a review takes this route."""
        pairs = ((self.job, job), (self.step, step), (self.review, review))
        return all(pattern is None or pattern == name for pattern, name in pairs)


@dataclass(frozen=True)
class Routing:
    """All reviewers of a gate, and the routes of the reviews."""

    default: Reviewer
    routes: Sequence[Route] = ()

    @property
    def reviewers(self) -> list[Reviewer]:
        """All of them, each once."""
        routed = [reviewer for route in self.routes for reviewer in route.reviewers]
        return [*dict.fromkeys([self.default, *routed])]

    def reviewers_of(self, job: str, step: str, review: str) -> Reviewers:
        """Choose who judges a review: those of the first route that fits, else the default."""
        fitting = (route.reviewers for route in self.routes if route.fits(job, step, review))
        return next(fitting, (self.default,))


@dataclass(frozen=True)
class Work:
    """What was submitted for one step of one session.

    Attributes:
        outputs_by_step: What the earlier steps have made.
        reviewers: Who judges each review, one after the other, by its `run_each`.
    """

    session_id: str
    job_name: str
    workflow_name: str
    step: Step
    outputs: Outputs
    outputs_by_step: Mapping[str, Outputs] = field(default_factory=dict)
    notes: str | None = None
    reviewers: Mapping[str, Reviewers] = field(default_factory=dict)

    @cached_property
    def inputs(self) -> list[ListedFile]:
        """The files of earlier steps on which this step builds, with the paths that were reported."""
        return [
            listed
            for item in self.step.inputs
            if isinstance(item, FileInput)
            for listed in files_of({item.file: self.outputs_by_step.get(item.from_step, {}).get(item.file, [])})
        ]

    @cached_property
    def files(self) -> list[ListedFile]:
        """All files that a reviewer may see."""
        return [*files_of(self.outputs), *self.inputs]

    @cached_property
    def reviews(self) -> list[Review]:
        """The reviews that have something to judge: that of an output which was not submitted has nothing."""
        return [
            review for review in self.step.reviews if review.run_each == WHOLE_STEP or self.outputs.get(review.run_each)
        ]

    @cached_property
    def skipped(self) -> tuple[str, ...]:
        """The outputs whose reviews have nothing to judge."""
        return tuple(dict.fromkeys(review.run_each for review in self.step.reviews if review not in self.reviews))

    @cached_property
    def gives_verdicts(self) -> bool:
        """True if any review goes to a reviewer that gives a verdict; the others are handed back."""
        judges = chain.from_iterable(self.reviewers[review.run_each] for review in self.reviews)
        return any(reviewer.spec.gives_verdicts for reviewer in judges)

    def key(self, fingerprints: Fingerprints) -> tuple[str, str, str]:
        """Return session, step, and a digest of the submission: equal work has one review at a time."""
        content = digest_of(sorted(self.outputs.items()), digests(fingerprints, self.files))
        return self.session_id, self.step.id, content


@dataclass(frozen=True)
class Portion:
    """What one verdict judges: all files of a step, or one of them."""

    review: Review
    files: tuple[ListedFile, ...]
    target_file: str | None


@dataclass(frozen=True)
class Evaluation:
    """One run of one reviewer: on a whole step, on an output, or on one of its files.

    Attributes:
        key: Digest of everything on which a verdict depends; a pass of this key need not be repeated.
        subject: Digest of the same without the author's notes; a failure of this subject need not be repeated.
    """

    task: ReviewTask
    files: tuple[ListedFile, ...]
    target_file: str | None
    reviewer: Reviewer
    key: str
    subject: str

    @property
    def name(self) -> str:
        """How people know it."""
        return self.target_file or self.task.run_each


def evaluations(work: Work, fingerprints: Fingerprints) -> Iterator[tuple[Evaluation, ...]]:
    """Divide the work, whose files have these contents, among the reviewers that give verdicts.

    Yields the evaluations of each portion, which are made one after the other until one does not pass.
    """
    for portion in portions(work):
        task = _task(portion.review, [path for path, _ in portion.files])
        reviewers = [reviewer for reviewer in work.reviewers[portion.review.run_each] if reviewer.spec.gives_verdicts]
        if reviewers:
            yield tuple(
                Evaluation(
                    task,
                    portion.files,
                    portion.target_file,
                    reviewer,
                    *verdict_keys(work, fingerprints, portion, reviewer.name),
                )
                for reviewer in reviewers
            )


def portions(work: Work) -> Iterator[Portion]:
    """Divide what all reviews judge: a step as a whole, an output as a file, or each file of a list by itself."""
    for review in work.reviews:
        if review.run_each == WHOLE_STEP:
            yield Portion(review, tuple(files_of(work.outputs)), None)
            continue
        for listed in files_of({review.run_each: work.outputs[review.run_each]}):
            yield Portion(review, (listed,), listed.path)


def verdict_keys(work: Work, fingerprints: Fingerprints, portion: Portion, reviewer: str) -> tuple[str, str]:
    """Digest everything on which a verdict of this reviewer depends, with the author's notes and without them."""
    review = portion.review
    question = (reviewer, review.run_each, sorted(review.quality_criteria.items()), review.additional_review_guidance)
    files = (digests(fingerprints, portion.files), digests(fingerprints, work.inputs))
    return digest_of(*question, work.notes, *files), digest_of(*question, None, *files)


def handed_back_tasks(work: Work) -> dict[Reviewer, list[ReviewTask]]:
    """Collect the reviews of every reviewer that gives no verdicts: it gets all of a step together."""
    tasks: dict[Reviewer, list[ReviewTask]] = {}
    for review in work.reviews:
        for reviewer in work.reviewers[review.run_each]:
            if not reviewer.spec.gives_verdicts:
                tasks.setdefault(reviewer, []).append(_whole_task(work, review))
    return tasks


def _whole_task(work: Work, review: Review) -> ReviewTask:
    if review.run_each == WHOLE_STEP:
        return _task(review, ())
    kind = KINDS[work.step.outputs[review.run_each].type]
    return _task(review, kind.files(work.outputs[review.run_each]), one_by_one=kind.one_by_one)


def _task(review: Review, files: Iterable[str], *, one_by_one: bool = False) -> ReviewTask:
    return ReviewTask(
        run_each=review.run_each,
        criteria=review.quality_criteria,
        guidance=review.additional_review_guidance,
        files=tuple(files),
        one_by_one=one_by_one,
    )
