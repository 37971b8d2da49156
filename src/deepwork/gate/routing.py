"""Who judges what: the chosen runner, and routes that send single reviews to others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from deepwork.ports.records import ReviewRunnerSpec
from deepwork.ports.review_runner import ReviewRunner


@dataclass(frozen=True, eq=False)
class Reviewer:
    """A runner, with what the gate has to know of it."""

    name: str
    runner: ReviewRunner
    max_inline_files: int
    gives_verdicts: bool = True
    reads_files: bool = True
    judges_project: bool = False
    slots: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(math.inf))

    @classmethod
    def of(cls, spec: ReviewRunnerSpec) -> Reviewer:
        """Make the runner that a plugin declares."""
        slots = anyio.CapacityLimiter(spec.concurrency or math.inf)
        return cls(
            spec.name,
            spec.create(),
            spec.max_inline_files,
            spec.gives_verdicts,
            spec.reads_files,
            spec.judges_project,
            slots,
        )


@dataclass(frozen=True)
class Route:
    """Sends reviews to a reviewer; what is None fits all."""

    reviewer: Reviewer
    job: str | None = None
    step: str | None = None
    review: str | None = None

    def fits(self, job: str, step: str, review: str) -> bool:
        """Say whether a review takes this route."""
        pairs = ((self.job, job), (self.step, step), (self.review, review))
        return all(pattern is None or pattern == name for pattern, name in pairs)


@dataclass(frozen=True)
class Routing:
    """All reviewers of a gate, and which reviews go to whom."""

    default: Reviewer
    routes: Sequence[Route] = ()

    @property
    def reviewers(self) -> list[Reviewer]:
        """All of them, each once."""
        return [*dict.fromkeys([self.default, *(route.reviewer for route in self.routes)])]

    def reviewer(self, job: str, step: str, review: str) -> Reviewer:
        """Choose the reviewer of a review: that of the first route that fits, else the default."""
        return next((route.reviewer for route in self.routes if route.fits(job, step, review)), self.default)
