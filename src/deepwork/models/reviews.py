"""A review: what a runner is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict


class CriterionResult(BaseModel):
    """The verdict on one criterion."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    criterion: str
    passed: bool
    feedback: str | None


class ReviewResult(BaseModel):
    """A failed review, as the agent reads it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    review_run_each: str
    target_file: str | None
    passed: bool
    feedback: str
    criteria_results: list[CriterionResult]


@dataclass(frozen=True)
class ReviewTask:
    """One evaluation: which criteria apply to which files."""

    run_each: str
    criteria: dict[str, str]
    guidance: str | None = None
    files: tuple[str, ...] = ()
    one_by_one: bool = False


@dataclass(frozen=True)
class ReviewRequest:
    """Everything that a runner may know about the step that it judges.

    `payload` is the text with the INPUTS and OUTPUTS sections, `parameters` are what the step asked
    of the user, name to description, `tasks` the reviews in the order of the job file. Paths are
    relative to `project_root` where they lie in it.
    """

    session_id: str
    job_name: str
    workflow_name: str
    step_id: str
    project_root: Path
    tasks: tuple[ReviewTask, ...]
    payload: str
    notes: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HandedBack:
    """No verdict: the agent itself has the work reviewed, as the feedback tells it."""

    feedback: str


Verdict = HandedBack
