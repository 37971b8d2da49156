"""The rows of the tables as the tools use them, and how agents see them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from deepwork_orchestration.states import HUMAN, PERSON

Mapped = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        TABLE: The name of the table.
        PREFIX: The beginning of the ids of its rows.
        KIND: What errors call it.
    """

    TABLE: ClassVar[str]
    PREFIX: ClassVar[str]
    KIND: ClassVar[str]

    id: str

    def reply(self) -> Mapped:
        """Return it as agents see it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Workflow(Row):
    """A plan without its long texts, which few calls need."""

    TABLE, PREFIX, KIND = "orchestration_workflows", "wf", "workflow"

    repository_id: str | None
    name: str
    source_type: str
    source_ref: str | None
    status: str
    plan_summary: str | None
    created_at: int
    updated_at: int
    max_parallel_tasks: int
    auto_create_workspaces: bool
    config: Mapped | None

    def summary(self) -> Mapped:
        """Return what lists and events show."""
        return {name: getattr(self, name) for name in ("id", "name", "status", "created_at", "updated_at")}


@dataclass(frozen=True)
class WholeWorkflow(Workflow):
    """A plan, where it came from, and what was planned at first."""

    source_content: str
    initial_plan: Mapped | None


@dataclass(frozen=True)
class Task(Row):
    """A task of a workflow.

    Attributes:
        open_dependencies: How many of those it waits for are neither completed nor skipped. No task leaves these two
            statuses, so the number only falls.
        assigned_agent_id: Whose claim it is, with its `fence`; whether the claim is still live, its lease knows.
    """

    TABLE, PREFIX, KIND = "orchestration_tasks", "tk", "task"

    workflow_id: str
    name: str
    description: str | None
    status: str
    sequence: int
    parallel_group: str | None
    plan: Mapped | None
    plan_summary: str | None
    context: Mapped | None
    outcome: str | None
    outcome_detail: Mapped | None
    error: str | None
    required_capabilities: list[str] | None
    open_dependencies: int
    workspace_id: str | None
    assigned_agent_id: str | None
    claimed_at: int | None
    fence: int | None
    created_at: int
    updated_at: int

    @property
    def shown_status(self) -> str:
        """The status that is told: a pending task that waits for others is blocked."""
        return shown_status(self.status, self.open_dependencies)

    def reply(self) -> Mapped:
        reply = super().reply() | {"status": self.shown_status}
        del reply["fence"], reply["open_dependencies"]
        return reply

    def brief(self) -> Mapped:
        """Return its short form for lists."""
        return {"id": self.id, "name": self.name, "status": self.shown_status}

    def event(self) -> Mapped:
        """Return what the feed shows of it."""
        names = ("workflow_id", "sequence", "parallel_group", "assigned_agent_id", "workspace_id", "updated_at")
        return self.brief() | {name: getattr(self, name) for name in names}


def shown_status(status: str, open_dependencies: int) -> str:
    """Return the status that agents are told of a stored one."""
    return "blocked" if status == "pending" and open_dependencies else status


@dataclass(frozen=True)
class Checkpoint(Row):
    """A step on the way of a task."""

    TABLE, PREFIX, KIND = "orchestration_checkpoints", "cp", "checkpoint"

    task_id: str
    sequence: int
    checkpoint_type: str
    summary: str
    detail: Mapped | None
    files_changed: list[str] | None
    created_at: int

    def reply(self) -> Mapped:
        # The input is called `type`; the stored word is told besides.
        return {"type": self.checkpoint_type, **super().reply()}


@dataclass(frozen=True)
class Workspace(Row):
    """A folder in which tasks of a workflow are worked on."""

    TABLE, PREFIX, KIND = "orchestration_workspaces", "ws", "workspace"

    workflow_id: str
    path: str
    branch: str
    base_branch: str | None
    status: str
    merge_commit: str | None
    created_at: int
    updated_at: int


@dataclass(frozen=True)
class Repository(Row):
    """A repository that workflows belong to."""

    TABLE, PREFIX, KIND = "orchestration_repositories", "rp", "repository"

    path: str
    name: str | None
    created_at: int
    updated_at: int


@dataclass(frozen=True)
class Template(Row):
    """A plan with variables, to make workflows from."""

    TABLE, PREFIX, KIND = "orchestration_templates", "tmpl", "template"

    name: str
    description: str | None
    template: Mapped
    version: int
    created_at: int
    updated_at: int


@dataclass(frozen=True)
class Agent(Row):
    """An agent that has registered."""

    TABLE, PREFIX, KIND = "orchestration_agents", "ag", "agent"

    name: str
    runtime: str
    role: str
    status: str
    capabilities: list[str] | None
    current_task_id: str | None
    workspace_path: str | None
    last_heartbeat: int
    metadata: Mapped | None
    lost_task_ids: list[str] | None
    principal: str
    created_at: int
    updated_at: int

    @property
    def is_person(self) -> bool:
        """Whether it stands for a person, who gets the tasks that need one."""
        return self.principal.startswith(PERSON)

    @property
    def says_person(self) -> bool:
        """Whether it only says in its metadata that it is a person."""
        return not self.is_person and (self.metadata or {}).get(HUMAN) is True

    def reply(self) -> Mapped:
        reply = super().reply()
        del reply["lost_task_ids"], reply["principal"]
        return reply


@dataclass(frozen=True)
class Message(Row):
    """A message to one agent; without a sender it is from the system."""

    TABLE, PREFIX, KIND = "orchestration_messages", "msg", "message"

    sender_id: str | None
    recipient_id: str
    message_type: str
    subject: str | None
    body: str | Mapped
    priority: str
    status: str
    workflow_id: str | None
    task_id: str | None
    reply_to_id: str | None
    thread_id: str
    created_at: int
    read_at: int | None
    expires_at: int | None

    def event(self) -> Mapped:
        """Return what the feed shows of it; the body is for the reader of the message."""
        reply = self.reply()
        del reply["body"]
        return reply
