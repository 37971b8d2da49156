"""The tables. Imported at the first call only, because SQLAlchemy is large."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, MetaData, Table, Text, UniqueConstraint

from deepwork_sql.columns import JSON, Key, Milliseconds

metadata = MetaData()


def _number() -> Column[int]:
    """The order of insertion: rows of the same millisecond are listed in it."""
    return Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


def _id() -> Column[str]:
    return Column("id", Key, nullable=False, unique=True)


def _times() -> tuple[Column[int], Column[int]]:
    return Column("created_at", Milliseconds, nullable=False), Column("updated_at", Milliseconds, nullable=False)


def _reference(name: str, target: str, *, nullable: bool = True, **options: Any) -> Column[str]:
    return Column(name, Key, ForeignKey(f"orchestration_{target}.id"), nullable=nullable, **options)


repositories = Table(
    "orchestration_repositories",
    metadata,
    _number(),
    _id(),
    Column("path", Key, nullable=False, unique=True),
    Column("name", Text),
    *_times(),
)

workflows = Table(
    "orchestration_workflows",
    metadata,
    _number(),
    _id(),
    _reference("repository_id", "repositories", index=True),
    Column("name", Text, nullable=False),
    Column("source_type", Text, nullable=False),
    Column("source_ref", Text),
    Column("source_content", Text, nullable=False),
    Column("status", Key, nullable=False),
    Column("initial_plan", JSON),
    Column("plan_summary", Text),
    Column("max_parallel_tasks", Integer, nullable=False),
    Column("auto_create_workspaces", Boolean, nullable=False),
    Column("config", JSON),
    Column("principal", Text, nullable=False),
    *_times(),
    Index("orchestration_workflows_in_order", "created_at", "number"),
    Index("orchestration_workflows_by_status", "status", "created_at", "number"),
)

# `assigned_agent_id` and `fence` say whose claim a task is; whether it is still live, its lease knows.
# `open_dependencies` counts those that are neither completed nor skipped. No task leaves these two, so it only falls.
tasks = Table(
    "orchestration_tasks",
    metadata,
    _number(),
    _id(),
    _reference("workflow_id", "workflows", nullable=False),
    Column("name", Key, nullable=False),
    Column("description", Text),
    Column("status", Key, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("parallel_group", Key),
    Column("plan", JSON),
    Column("plan_summary", Text),
    Column("context", JSON),
    Column("outcome", Text),
    Column("outcome_detail", JSON),
    Column("error", Text),
    Column("required_capabilities", JSON),
    Column("open_dependencies", Integer, nullable=False),
    Column("workspace_id", Key),
    Column("assigned_agent_id", Key, index=True),
    Column("claimed_at", Milliseconds),
    Column("claimed_by", Text),
    Column("fence", BigInteger),
    *_times(),
    # The `number` of the workflow, for the index by which available tasks are read in their order.
    Column("workflow_number", BigInteger),
    UniqueConstraint("workflow_id", "name"),
    Index("orchestration_tasks_in_order", "workflow_id", "sequence"),
    Index("orchestration_tasks_available", "status", "open_dependencies", "sequence", "workflow_number", "name"),
)

dependencies = Table(
    "orchestration_dependencies",
    metadata,
    Column("task_id", Key, ForeignKey("orchestration_tasks.id"), primary_key=True),
    Column("depends_on_id", Key, ForeignKey("orchestration_tasks.id"), primary_key=True, index=True),
    Column("type", Text, nullable=False),
)

checkpoints = Table(
    "orchestration_checkpoints",
    metadata,
    _number(),
    _id(),
    _reference("task_id", "tasks", nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("checkpoint_type", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("detail", JSON),
    Column("files_changed", JSON),
    Column("created_at", Milliseconds, nullable=False),
    UniqueConstraint("task_id", "sequence"),
)

workspaces = Table(
    "orchestration_workspaces",
    metadata,
    _number(),
    _id(),
    _reference("workflow_id", "workflows", nullable=False, index=True),
    Column("path", Key, nullable=False, index=True),
    Column("branch", Text, nullable=False),
    Column("base_branch", Text),
    Column("status", Key, nullable=False),
    Column("merge_commit", Text),
    *_times(),
)

templates = Table(
    "orchestration_templates",
    metadata,
    _number(),
    _id(),
    Column("name", Key, nullable=False, unique=True),
    Column("description", Text),
    Column("template", JSON, nullable=False),
    Column("version", Integer, nullable=False),
    *_times(),
)

agents = Table(
    "orchestration_agents",
    metadata,
    _number(),
    _id(),
    Column("name", Text, nullable=False),
    Column("runtime", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("status", Key, nullable=False),
    Column("capabilities", JSON),
    Column("current_task_id", Key),
    Column("workspace_path", Text),
    Column("last_heartbeat", Milliseconds, nullable=False),
    Column("metadata", JSON),
    Column("lost_task_ids", JSON),
    Column("principal", Text, nullable=False),
    *_times(),
)

messages = Table(
    "orchestration_messages",
    metadata,
    _number(),
    _id(),
    _reference("sender_id", "agents", index=True),
    _reference("recipient_id", "agents", nullable=False),
    Column("message_type", Text, nullable=False),
    Column("subject", Text),
    Column("body", JSON, nullable=False),
    Column("priority", Text, nullable=False),
    Column("status", Key, nullable=False),
    Column("workflow_id", Key),
    Column("task_id", Key),
    Column("reply_to_id", Key),
    Column("thread_id", Key, nullable=False, index=True),
    Column("created_at", Milliseconds, nullable=False),
    Column("read_at", Milliseconds),
    Column("expires_at", Milliseconds),
    Index("orchestration_messages_inbox", "recipient_id", "status", "number"),
)
