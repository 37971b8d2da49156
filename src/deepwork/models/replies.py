"""What agents read: the results of the four tools. Field names are those of the specification.

A field that the specification does not have, or that does not apply to a `finished_step`, is left out: an agent pays
for every word.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from deepwork.models.outputs import Outputs
from deepwork.models.reviews import ReviewResult
from deepwork.models.sessions import StepStatus

# No field that is left out is a number or true or false, so that what counts as false says nothing.
Additional = Field(exclude_if=operator.not_)
# A field that the specification marks as optional.
Optional = Field(exclude_if=partial(operator.is_, None))
Notices = Annotated[list[str], Additional]


class Reply(BaseModel):
    """Something that goes to the agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WorkflowInfo(Reply):
    name: str
    summary: str


class JobInfo(Reply):
    name: str
    summary: str
    description: str | None
    workflows: list[WorkflowInfo]


class JobErrorInfo(Reply):
    job_name: str
    job_dir: str
    error: str


class ActiveSession(Reply):
    """A session that the caller may go on with, and the call that tells where it is."""

    session_id: str
    workflow: str
    step: str
    goal: str
    updated_at: str
    resume: str


class WorkflowList(Reply):
    # These come first, and are the same objects for as long as they say the same, so that they are written once.
    UNCHANGING: ClassVar = ("jobs", "errors")

    jobs: list[JobInfo]
    errors: list[JobErrorInfo]
    active_sessions: Annotated[list[ActiveSession], Additional] = []
    notices: Notices = []


class ExpectedOutput(Reply):
    name: str
    type: str
    description: str
    required: bool
    syntax_for_finished_step_tool: str


class ReviewInfo(Reply):
    run_each: str
    quality_criteria: dict[str, str]
    additional_review_guidance: Annotated[str | None, Additional] = None


class StepInputInfo(Reply):
    """An input of a step: a parameter with its description, or a file of an earlier step with its path."""

    name: str
    description: Annotated[str | None, Additional] = None
    from_step: Annotated[str | None, Additional] = None
    path: Annotated[str | list[str] | None, Additional] = None


class GroupMember(Reply):
    """Another open step of the group that is to be done at the same time."""

    step_id: str
    step_expected_outputs: list[ExpectedOutput]
    step_reviews: list[ReviewInfo]
    step_inputs: Annotated[list[StepInputInfo], Additional] = []
    step_instructions: str


class BeginStep(Reply):
    session_id: str
    step_id: str
    job_dir: str
    step_expected_outputs: list[ExpectedOutput]
    step_reviews: list[ReviewInfo]
    step_inputs: Annotated[list[StepInputInfo], Additional] = []
    step_instructions: str
    common_job_info: str
    branch_name: Annotated[str | None, Additional] = None
    concurrent_steps: Annotated[list[GroupMember], Additional] = []


class StackEntry(Reply):
    workflow: str
    step: str


class StartedWorkflow(Reply):
    begin_step: BeginStep
    stack: list[StackEntry]
    notices: Notices = []


class PersonComment(Reply):
    """What a person says of a line of a reported file; `suggestion` is a unified diff."""

    id: str
    file: str
    line: int
    quoted: str
    text: str
    must: bool
    suggestion: Annotated[str | None, Additional] = None


class WaitsFor(Reply):
    """Whom a step waits for, where they answer, and since when."""

    kind: str = "person"
    where: str
    since: str


class FinishedStep(Reply):
    status: StepStatus
    feedback: Annotated[str | None, Optional] = None
    failed_reviews: Annotated[list[ReviewResult] | None, Optional] = None
    # Not in the schema, for which every conversation pays: they explain themselves.
    comments: Annotated[SkipJsonSchema[list[PersonComment]], Additional] = []
    waits_for: Annotated[SkipJsonSchema[WaitsFor | None], Optional] = None
    begin_step: Annotated[BeginStep | None, Optional] = None
    summary: Annotated[str | None, Optional] = None
    all_outputs: Annotated[Outputs | None, Optional] = None
    outputs_by_step: Annotated[dict[str, Outputs] | None, Additional] = None
    stack: list[StackEntry] = []
    notices: Notices = []


class AbortedWorkflow(Reply):
    aborted_workflow: str
    aborted_step: str
    explanation: str
    stack: list[StackEntry]
    resumed_workflow: str | None
    resumed_step: str | None
    notices: Notices = []
