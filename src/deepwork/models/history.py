"""What can happen in a session: a model for each kind of entry of its history.

An entry is stored as JSON, with all fields of a later release. `HistoryEntry.detail` reads it as the
model of its kind. `docs/reference/history.md` says what each field means.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepwork.models.standing import PERSON


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
    OVERRIDE_ASKED = "override_asked"
    OVERRIDE = "override"
    GATE_OFF = "gate_off"
    SELF_REVIEW = "self_review"
    STEP_COMPLETED = "step_completed"
    COMPLETED = "completed"
    ABORTED = "aborted"
    REOPENED = "reopened"
    NOTE = "note"
    WAITING = "waiting"
    PAUSED = "paused"
    UNPAUSED = "unpaused"
    AGENT_GONE = "agent_gone"
    PERSON_ASKED = "person_asked"
    COMMENT_ANSWERED = "comment_answered"
    COMMENT_RESOLVED = "comment_resolved"


class StoredModel(BaseModel):
    """A part of a session file. Fields of a later release survive a load and save."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Detail(StoredModel):
    """The details of one event.

    Files of sessions may be edited by hand, so values are not converted: `"passed": "yes"` is not a verdict.
    """

    model_config = ConfigDict(strict=True)

    kind: ClassVar[EventKind]


class Unknown(StoredModel):
    """The detail of an entry of a later release, or a malformed one. It counts as nothing."""


class Started(Detail):
    """The session was started."""

    kind = EventKind.STARTED
    principal: str | None = None
    goal: str | None = None


class StepBegun(Detail):
    """A step has become one of the current ones."""

    kind = EventKind.STEP_BEGUN


class HandedBack(Detail):
    """The agent was told to have its work reviewed."""

    kind = EventKind.REVIEW_HANDED_BACK
    feedback: str | None = None


class KeptFile(StoredModel):
    """A file as it was reported, and whether its content is kept outside of the project."""

    model_config = ConfigDict(strict=True)

    path: str
    digest: str
    output: str | None = None
    size: int = 0
    # text, markdown, csv, json, image or binary
    form: str = "binary"
    kept: bool = False
    secret: bool = False


class Attempt(Detail):
    """A review has begun, under the limits that are in force at this moment.

    `work` is the digest of the report, and `machine` where its contents are, for steps whose contents are kept.
    """

    kind = EventKind.ATTEMPT
    number: int | None = None
    max_attempts: int | None = None
    max_failures: int | None = None
    strict: bool | None = None
    files: list[str] | None = None
    work: str | None = None
    machine: str | None = None
    contents: list[KeptFile] = []


class Criterion(StoredModel):
    """The answer to one criterion."""

    model_config = ConfigDict(strict=True)

    criterion: str
    passed: bool
    feedback: str | None = None


class Finding(StoredModel):
    """What a reviewer has found in one place."""

    model_config = ConfigDict(strict=True)

    file: str
    line: int
    end_line: int | None = None
    criterion: str | None = None
    message: str = ""
    level: str = "error"


class Proof(StoredModel):
    """Whether a gate was seen to refuse the work when it was broken."""

    model_config = ConfigDict(strict=True)

    result: str
    grade: str | None = None
    reason: str | None = None


class Conclusion(Detail):
    """How one review of an attempt has ended."""

    run_each: str | None = None
    file: str | None = None
    runner: str | None = None
    seconds: float | None = None
    asks_user: bool | None = None
    proof: Proof | None = None


class Verdict(Conclusion):
    """A reviewer has judged."""

    kind = EventKind.VERDICT
    passed: bool = False
    reused: bool = False
    feedback: str = ""
    criteria: list[Criterion] = []
    findings: list[Finding] = []
    asked: list[str] | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    digests: dict[str, str] = {}
    key: str | None = None
    subject: str | None = None
    changed: list[str] = []
    # Whether a person has decided; who it was stands beside it as with an override.
    by: str | None = None


class NoVerdict(Conclusion):
    """A reviewer gave no verdict."""

    kind = EventKind.INFRASTRUCTURE
    error: str = ""
    error_kind: str | None = Field(None, alias="kind")
    until: str | None = None


class Skipped(Detail):
    """A review was not made."""

    kind = EventKind.REVIEW_SKIPPED
    run_each: str | None = None
    reason: str | None = None


class GivenBack(Detail):
    """An attempt does not count."""

    kind = EventKind.ATTEMPT_GIVEN_BACK
    reason: str | None = None


class OverrideAsked(Detail):
    """A strict gate needs a person for what the agent has asked."""

    kind = EventKind.OVERRIDE_ASKED
    reason: str | None = None
    files: list[str] | None = None
    # Who has said yes to it over HTTP, where no person is seen.
    by: str | None = None
    client: str | None = None
    principal: str | None = None


class Override(Detail):
    """A step passes without a review."""

    kind = EventKind.OVERRIDE
    reason: str | None = None
    before_review: bool = False
    by: str | None = None
    user: str | None = None
    principal: str | None = None
    client: str | None = None
    terminal: str | None = None
    process: list[str] | None = None
    asked_by: str | None = None

    @property
    def is_of_person(self) -> bool:
        """True if a person has said so, as far as this machine can tell."""
        return self.by == PERSON


class GateOff(Detail):
    """A step has reviews that were not made, because the quality gate was off."""

    kind = EventKind.GATE_OFF


class SelfReview(Detail):
    """By the agent's word, the review that was handed back has passed."""

    kind = EventKind.SELF_REVIEW
    reason: str | None = None


class StepCompleted(Detail):
    """A step is completed."""

    kind = EventKind.STEP_COMPLETED
    outputs: dict[str, str | list[str]] = {}
    reported: bool = True
    agent: str | None = None


class Completed(Detail):
    """The workflow is completed."""

    kind = EventKind.COMPLETED


class Aborted(Detail):
    """The workflow was ended before its end."""

    kind = EventKind.ABORTED
    explanation: str | None = None


class Reopened(Detail):
    """A person has made a step the current one again."""

    kind = EventKind.REOPENED
    reason: str | None = None


class Anchor(StoredModel):
    """What a comment holds on to: digests of its lines, and of those before and after them."""

    model_config = ConfigDict(strict=True)

    lines: list[str] = []
    before: list[str] = []
    after: list[str] = []


class Note(Detail):
    """A person has noted something for the agent of a step; with an id, it is a comment on lines of a file."""

    kind = EventKind.NOTE
    text: str = ""
    by: str | None = None
    at: str | None = None
    id: str | None = None
    attempt: int | None = None
    file: str | None = None
    line: int | None = None
    end_line: int | None = None
    quoted: str | None = None
    must: bool = False
    suggestion: str | None = None
    anchor: Anchor | None = None


class Waiting(Detail):
    """An agent has to wait before it goes on. Without a named time, each further wait is twice as long."""

    kind = EventKind.WAITING
    until: str = ""
    cause: str = ""
    agent: str | None = None
    is_guess: bool = False


class Paused(Detail):
    """A person has paused the session: no step of it is completed until it is unpaused."""

    kind = EventKind.PAUSED
    reason: str = ""


class Unpaused(Detail):
    """A person lets a paused session go on."""

    kind = EventKind.UNPAUSED


class AgentGone(Detail):
    """The client of an agent that has worked on the session has ended."""

    kind = EventKind.AGENT_GONE
    client: str = ""


class AskedReview(StoredModel):
    """A review that a person is asked for, with the digests of the reported files."""

    model_config = ConfigDict(strict=True)

    run_each: str
    file: str | None = None
    runner: str
    asked: list[str] = []
    key: str
    subject: str


class PersonAsked(Detail):
    """A step waits for a person, who was asked about a report; `work` is the digest of that report."""

    kind = EventKind.PERSON_ASKED
    reference: str = ""
    text: str = ""
    work: str = ""
    reviews: list[AskedReview] = []


class CommentAnswered(Detail):
    """The agent has answered a comment."""

    kind = EventKind.COMMENT_ANSWERED
    id: str = ""
    text: str = ""
    attempt: int | None = None


class CommentResolved(Detail):
    """A person has settled a comment."""

    kind = EventKind.COMMENT_RESOLVED
    id: str = ""
    by: str | None = None


_MODELS: tuple[type[Detail], ...] = (
    *(Started, StepBegun, HandedBack, Attempt, Verdict, NoVerdict, Skipped, GivenBack, OverrideAsked, Override),
    *(GateOff, SelfReview, StepCompleted, Completed, Aborted, Reopened, Note, Waiting, Paused, Unpaused, AgentGone),
    *(PersonAsked, CommentAnswered, CommentResolved),
)
DETAILS: dict[str, type[Detail]] = {model.kind: model for model in _MODELS}


class HistoryEntry(StoredModel):
    """One thing that happened. The order of the list is the order of events, even if the clock was set back."""

    model_config = ConfigDict(serialize_by_alias=True)

    at: str
    kind: str
    step_id: str | None = None
    # As JSON, and read as a model on demand: most calls load a history and need only its last entries.
    stored: dict[str, Any] = Field({}, alias="detail")

    @cached_property
    def detail(self) -> Detail | Unknown:
        """What is known of it, as the model of its kind."""
        try:
            return DETAILS.get(self.kind, Unknown).model_validate(self.stored)
        except ValidationError:
            return Unknown.model_validate(self.stored)

    @classmethod
    def of(cls, detail: Detail, at: str, step_id: str | None = None) -> HistoryEntry:
        """Make the entry of an event."""
        stored = detail.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return cls(at=at, kind=detail.kind, step_id=step_id, detail=stored)
