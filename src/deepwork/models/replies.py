"""What agents read: the results of the four tools. Field names are those of the specification."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from deepwork.models.outputs import Outputs
from deepwork.models.reviews import ReviewResult
from deepwork.models.sessions import StepStatus


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


class WorkflowList(Reply):
    jobs: list[JobInfo]
    errors: list[JobErrorInfo]


class ExpectedOutput(Reply):
    name: str
    type: str
    description: str
    required: bool
    syntax_for_finished_step_tool: str


class ReviewInfo(Reply):
    run_each: str
    quality_criteria: dict[str, str]
    additional_review_guidance: str | None


class StepInputInfo(Reply):
    """An input of a step: a parameter with its description, or a file of an earlier step with its path."""

    name: str
    description: str | None = None
    from_step: str | None = None
    path: str | list[str] | None = None


class GroupMember(Reply):
    """Another step of the group that is to be done at the same time."""

    step_id: str
    step_expected_outputs: list[ExpectedOutput]
    step_reviews: list[ReviewInfo]
    step_inputs: list[StepInputInfo]
    step_instructions: str


class BeginStep(Reply):
    session_id: str
    step_id: str
    job_dir: str
    step_expected_outputs: list[ExpectedOutput]
    step_reviews: list[ReviewInfo]
    step_inputs: list[StepInputInfo]
    step_instructions: str
    common_job_info: str
    branch_name: str | None
    concurrent_steps: list[GroupMember]


class StackEntry(Reply):
    workflow: str
    step: str


class StartedWorkflow(Reply):
    begin_step: BeginStep
    stack: list[StackEntry]
    notices: list[str]


class FinishedStep(Reply):
    status: StepStatus
    feedback: str | None = None
    failed_reviews: list[ReviewResult] | None = None
    begin_step: BeginStep | None = None
    summary: str | None = None
    all_outputs: Outputs | None = None
    outputs_by_step: dict[str, Outputs] | None = None
    stack: list[StackEntry] = []
    notices: list[str] = []


class AbortedWorkflow(Reply):
    aborted_workflow: str
    aborted_step: str
    explanation: str
    stack: list[StackEntry]
    resumed_workflow: str | None
    resumed_step: str | None
    notices: list[str]
