"""What is stored of one run of a workflow. Fields of a newer release survive a load and save."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WrapValidator

from deepwork.models.history import HistoryEntry, StoredModel
from deepwork.models.jobs import Step, Workflow
from deepwork.models.outputs import Outputs
from deepwork.models.standing import Standing
from deepwork.text import one_line

SCHEMA_VERSION = 1
MAX_PARENTS = 1000


# Ours are 32 hexadecimal digits; sessions of DeepWork 0.9 have 8.
SESSION_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}")


def is_session_id(text: str) -> bool:
    """True if a text has the form of a session id. Stores are asked for nothing else: an id may become a path."""
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
    """The reply of `finished_step` when the step was completed.

    `begun_step` is the step that it began, `open_members` the other steps of its group that were open then; sessions of
    earlier releases do not have them.
    """

    status: StepStatus
    begun_step: str | None = None
    open_members: list[str] | None = None
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


class GitPlace(StoredModel):
    """Where in the history of its repository a project was."""

    branch: str | None = None
    commit: str | None = None


class StepProgress(StoredModel):
    """How far one step is.

    `quality_attempts` counts judged attempts of external reviewers, `runner_failures` the last calls in a row in which
    they gave no verdict. `handed_back` is what the agent was told when it had to have its work reviewed, for hooks,
    which read no history. `reported` are the outputs as the agent wrote them, where their paths were resolved to
    others. `told_comments` counts the comments of people, the oldest
    first, that its agent was told; those after `told_before` with a report of the files whose digest is `told_work`.
    """

    step_id: str
    started_at: str | None = None
    completed_at: str | None = None
    outputs: Outputs = {}
    reported: Outputs | None = None
    notes: str | None = None
    quality_attempts: int = 0
    runner_failures: int = 0
    handed_back: str | None = None
    override_reason: str | None = None
    begun: BegunStep | None = None
    reply: RecordedReply | None = None
    digests: dict[str, str] = {}
    told_comments: int = 0
    told_before: int = 0
    told_work: str | None = None


class PinnedDefinition(StoredModel):
    """The workflow as it was when the session started.

    `content_digest` shows whether anybody has edited it since. `digest` is that of release 1.0.0.dev0, which had no
    other; it does not cover keys of later releases.
    """

    digest: str
    content_digest: str | None = None
    job_dir: str
    common_job_info: str
    workflow: Workflow
    steps: dict[str, Step]

    @cached_property
    def stored_digest(self) -> str:
        """The digest of everything stored here in any order of keys, including those of later releases.

        What is not stored is left out: a field that a release adds has a default, and is not in older sessions. The
        folder is left out because it is looked up at each use.
        """
        content = self.model_dump(mode="json", exclude_unset=True, exclude={"digest", "content_digest", "job_dir"})
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return f"sha256:{sha256(text.encode()).hexdigest()}"

    @property
    def first_digest(self) -> str:
        """The digest as release 1.0.0.dev0 made it: of the stored texts, their keys in the order of the models."""
        steps = [self.steps[step_id] for step_id in self.workflow.step_ids if step_id in self.steps]
        workflow, *texts = (part.model_dump_json(exclude_unset=True) for part in (self.workflow, *steps))
        return sha256("\0".join([workflow, self.common_job_info, *texts]).encode()).hexdigest()


def _standing_or_none(value: Any, validate: Callable[[Any], Standing | None]) -> Standing | None:
    """Return a standing, or None if it is invalid: a session is usable without it."""
    try:
        return validate(value)
    except ValueError:
        return None


OwnStanding = Annotated[Standing | None, WrapValidator(_standing_or_none)]


# Whoever can write a session file can write any text into it, and listings are read without being asked for.
Line = Annotated[str, AfterValidator(one_line)]


class SessionSummary(BaseModel):
    """What a listing shows of a session: short texts of one line each, for any content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session_id: Line
    job_name: Line
    workflow_name: Line
    step_id: Line
    goal: Line
    status: SessionStatus
    started_at: Line
    updated_at: Line
    principal: Line
    # Where the session stands, if its document says so; a store may leave it out. The JSON leaves it out.
    standing: Standing | None = Field(None, exclude=True)

    @property
    def is_active(self) -> bool:
        return self.status is SessionStatus.ACTIVE

    @property
    def workflow(self) -> str:
        """`job/workflow`, as stacks name it."""
        return f"{self.job_name}/{self.workflow_name}"


class Session(StoredModel):
    """One run of one workflow. Files of release 0.9 have no field that is declared after `abort_reason`."""

    # Everything that `summary` reads, and the standing, comes before `instance_id`: listings read no further.
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
    standing: OwnStanding = None
    instance_id: str | None = None
    current_entry_index: int = 0
    abort_reason: str | None = None
    branch_name: str | None = None
    parents: list[str] = []
    step_progress: dict[str, StepProgress] = {}
    abort_reply: RecordedAbort | None = None
    git: GitPlace | None = None
    definition: PinnedDefinition | None = None
    history: list[HistoryEntry] = []
    strict: bool = False

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
    def is_unchanged(self) -> bool:
        """Whether the stored definition is still that of the start."""
        definition = self.definition
        if definition is None:
            return self.schema_version == 0  # release 0.9 kept none
        if definition.content_digest is None:
            return definition.digest == definition.first_digest
        return definition.content_digest == definition.stored_digest

    @property
    def position(self) -> str:
        """How far the session is, as `step 2 of 3`; empty for one of release 0.9, which does not know its steps."""
        if self.definition is None:
            return ""
        return f"step {self.current_entry_index + 1} of {len(self.definition.workflow.entries)}"

    @property
    def open_entry(self) -> list[str]:
        """The steps of the current entry, its primary first; none if the session is over.

        A session of release 0.9 has none before it is upgraded.
        """
        if self.definition is None or self.status is not SessionStatus.ACTIVE:
            return []
        return self.definition.workflow.entries[self.current_entry_index]

    @property
    def next_entry(self) -> list[str]:
        """The steps of the entry after the current one; none at the end."""
        following = self.pinned.workflow.entries[self.current_entry_index + 1 :]
        return following[0] if following else []

    @property
    def outputs_by_step(self) -> dict[str, Outputs]:
        """What each step has made so far."""
        return {step_id: progress.outputs for step_id, progress in self.step_progress.items()}

    @property
    def workflow(self) -> str:
        """`job/workflow`, as stacks name it."""
        return f"{self.job_name}/{self.workflow_name}"

    def shares_workflow_with(self, summary: SessionSummary) -> bool:
        """True if a summary is that of another session of the same workflow and principal."""
        return (
            summary.workflow == self.workflow
            and summary.principal == self.principal
            and summary.session_id != self.session_id
        )

    def contradictions(self) -> Iterator[str]:
        """Yield what is contradictory in this session: its file may have been written by hand."""
        definition = self.definition
        for step_id, progress in self.step_progress.items():
            if progress.step_id != step_id:
                yield f"the progress of step {step_id!r} is that of {progress.step_id!r}"
        if definition is None:
            return
        step_ids = definition.workflow.step_ids
        if len(set(step_ids)) != len(step_ids) or not all(definition.workflow.entries):
            yield "its workflow has an empty group, or a step twice"
        if {*step_ids} != {step_id for step_id, step in definition.steps.items() if step.id == step_id}:
            yield "its workflow has other steps than its definition"
        entry = dict(enumerate(definition.workflow.entries)).get(self.current_entry_index, [])
        if not entry or entry[0] != self.current_step_id:
            yield f"its current step {self.current_step_id!r} is not that of its current entry"
        if len(self.parents) > MAX_PARENTS:
            yield f"it has more than {MAX_PARENTS:,} parents"
        known_steps = {*step_ids, None}
        if not {*entry} <= self.step_progress.keys() <= known_steps:
            yield "the progress of its current steps is missing, or there is that of others"
        replies = [progress.reply for progress in self.step_progress.values() if progress.reply]
        begun_steps = {name for reply in replies for name in (reply.begun_step, *(reply.open_members or ()))}
        if not begun_steps <= known_steps:
            yield "a recorded reply begins a step that its workflow does not have"

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
