"""What is stored of one run of a workflow. Fields of a newer release survive a load and save."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict

from deepwork.models.jobs import Step, Workflow
from deepwork.models.outputs import Outputs

SCHEMA_VERSION = 1


# Ours are 32 hexadecimal digits; sessions of DeepWork 0.9 have 8.
SESSION_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}")


def is_session_id(text: str) -> bool:
    """Say whether a text has the form of a session id. Stores are asked for nothing else: an id may become a path."""
    return SESSION_ID.fullmatch(text) is not None


class SessionStatus(StrEnum):
    ACTIVE = "active"
    COMPLETED = "completed"
    ABORTED = "aborted"


class StepStatus(StrEnum):
    """What `finished_step` may answer."""

    NEEDS_WORK = "needs_work"
    NEXT_STEP = "next_step"
    WORKFLOW_COMPLETE = "workflow_complete"


class EventKind(StrEnum):
    """What may stand in a history."""

    STARTED = "started"
    STEP_BEGUN = "step_begun"
    REVIEW_HANDED_BACK = "review_handed_back"
    ATTEMPT = "attempt"
    VERDICT = "verdict"
    INFRASTRUCTURE = "infrastructure"
    REVIEW_SKIPPED = "review_skipped"
    ATTEMPT_GIVEN_BACK = "attempt_given_back"
    OVERRIDE = "override"
    SELF_REVIEW = "self_review"
    STEP_COMPLETED = "step_completed"
    COMPLETED = "completed"
    ABORTED = "aborted"


class StoredModel(BaseModel):
    """A part of a session file."""

    model_config = ConfigDict(extra="allow", frozen=True)


class BegunInput(StoredModel):
    """An input of a step: a parameter with its description, or a file of an earlier step with its path."""

    name: str
    description: str | None = None
    from_step: str | None = None
    path: str | list[str] | None = None


class BegunStep(StoredModel):
    """What a step was begun with: the text of its instructions, and its inputs."""

    step_id: str
    instructions: str
    inputs: list[BegunInput] = []


class RecordedReply(StoredModel):
    """What `finished_step` answered when the step was completed; `begun_step` names the step it began."""

    status: StepStatus
    begun_step: str | None = None
    summary: str | None = None
    all_outputs: Outputs | None = None
    outputs_by_step: dict[str, Outputs] | None = None
    notices: list[str] = []


class RecordedAbort(StoredModel):
    """What `abort_workflow` answered, except for the stack."""

    aborted_workflow: str
    aborted_step: str
    explanation: str
    resumed_workflow: str | None = None
    resumed_step: str | None = None
    notices: list[str] = []


class StepProgress(StoredModel):
    """How far one step is.

    `quality_attempts` counts judged attempts of external reviewers, `runner_failures` the last calls in a row in which
    they gave no verdict. `reported` are the outputs as the agent wrote them, where their paths were resolved to others.
    """

    step_id: str
    started_at: str | None = None
    completed_at: str | None = None
    outputs: Outputs = {}
    reported: Outputs | None = None
    notes: str | None = None
    quality_attempts: int = 0
    runner_failures: int = 0
    override_reason: str | None = None
    begun: BegunStep | None = None
    reply: RecordedReply | None = None


class PinnedDefinition(StoredModel):
    """The workflow as it was when the session started."""

    digest: str
    job_dir: str
    common_job_info: str
    workflow: Workflow
    steps: dict[str, Step]


class HistoryEntry(StoredModel):
    """One thing that happened. The order of the list is the order of events, whatever the clock said."""

    at: str
    kind: str
    step_id: str | None = None
    detail: dict[str, Any] = {}


class SessionSummary(BaseModel):
    """What a listing shows of a session."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session_id: str
    job_name: str
    workflow_name: str
    step_id: str
    goal: str
    status: SessionStatus
    started_at: str
    updated_at: str
    principal: str

    @property
    def is_active(self) -> bool:
        return self.status is SessionStatus.ACTIVE

    @property
    def workflow(self) -> str:
        """`job/workflow`, as stacks name it."""
        return f"{self.job_name}/{self.workflow_name}"


class Session(StoredModel):
    """One run of one workflow. Files of release 0.9 have no field that is declared after `abort_reason`."""

    # Everything that `summary` reads comes before `instance_id`: stores need not read further to list sessions.
    schema_version: int = 0
    revision: int = 0
    session_id: str
    status: SessionStatus = SessionStatus.ACTIVE
    job_name: str
    workflow_name: str
    current_step_id: str
    started_at: str
    updated_at: str | None = None
    completed_at: str | None = None
    principal: str = "local"
    goal: str
    instance_id: str | None = None
    current_entry_index: int = 0
    abort_reason: str | None = None
    branch_name: str | None = None
    parents: list[str] = []
    step_progress: dict[str, StepProgress] = {}
    abort_reply: RecordedAbort | None = None
    definition: PinnedDefinition | None = None
    history: list[HistoryEntry] = []

    @property
    def is_active(self) -> bool:
        return self.status is SessionStatus.ACTIVE

    @property
    def pinned(self) -> PinnedDefinition:
        """The definition. A session of release 0.9 has none until it is upgraded, before its first use."""
        if self.definition is None:
            raise ValueError(f"session {self.session_id} has no definition")
        return self.definition

    @property
    def workflow(self) -> str:
        """`job/workflow`, as stacks name it."""
        return f"{self.job_name}/{self.workflow_name}"

    def summary(self) -> SessionSummary:
        """Make what a listing shows of this session."""
        return SessionSummary(
            session_id=self.session_id,
            job_name=self.job_name,
            workflow_name=self.workflow_name,
            step_id=self.current_step_id,
            goal=self.goal,
            status=self.status,
            started_at=self.started_at,
            updated_at=self.updated_at or self.completed_at or self.started_at,
            principal=self.principal,
        )
