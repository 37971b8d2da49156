"""The tables of this plugin. `position` is the order of insertion, which decides between equal times."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, MetaData, Table, Text, UniqueConstraint

from deepwork_sql.columns import JSON, Key, Milliseconds

metadata = MetaData()


def _position() -> Column[Any]:
    return Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


workflows = Table(
    "tracking_workflows",
    metadata,
    _position(),
    Column("id", Key, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("objective", Text, nullable=False),
    Column("profile", Key, nullable=False),
    Column("status", Key, nullable=False),
    Column("current_phase", Integer, nullable=False),
    Column("total_phases", Integer, nullable=False),
    Column("scope", Text),
    Column("constraints", Text),
    Column("created_at", Milliseconds, nullable=False),
    Column("completed_at", Milliseconds),
    Column("ended_as", Key),
    Column("summary", Text),
    Column("achievements", JSON),
    Column("limitations", JSON),
    Column("metrics", JSON),
    Index("tracking_workflows_status", "status"),
)

phases = Table(
    "tracking_phases",
    metadata,
    _position(),
    Column("id", Key, nullable=False, unique=True),
    Column("workflow_id", Key, ForeignKey("tracking_workflows.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text),
    Column("is_parallel", Boolean, nullable=False),
    Column("status", Key, nullable=False),
    Column("summary", Text),
    Column("started_at", Milliseconds, nullable=False),
    Column("completed_at", Milliseconds),
    UniqueConstraint("workflow_id", "number", name="tracking_phases_number"),
)

tasks = Table(
    "tracking_tasks",
    metadata,
    _position(),
    Column("id", Key, nullable=False, unique=True),
    Column("workflow_id", Key, ForeignKey("tracking_workflows.id"), nullable=False),
    Column("phase_id", Key, ForeignKey("tracking_phases.id"), nullable=False),
    Column("parent_task_id", Key, ForeignKey("tracking_tasks.id")),
    Column("caller_type", Key, nullable=False),
    Column("agent_name", Text),
    Column("name", Text, nullable=False),
    Column("goal", Text, nullable=False),
    Column("areas", JSON, nullable=False),
    Column("status", Key, nullable=False),
    Column("snapshot_id", Text, nullable=False),
    Column("snapshot_type", Key, nullable=False),
    Column("started_at", Milliseconds, nullable=False),
    Column("completed_at", Milliseconds),
    Column("summary", Text),
    Column("achievements", JSON),
    Column("limitations", JSON),
    Column("next_steps", JSON),
    Column("manual_review_needed", Boolean, nullable=False),
    Column("packages_added", JSON),
    Column("tests_status", Key),
    Column("files_changed", JSON),
    Column("verification", JSON),
    Index("tracking_tasks_workflow", "workflow_id", "started_at", "position"),
    Index("tracking_tasks_phase", "phase_id"),
    Index("tracking_tasks_parent", "parent_task_id"),
)

# Large, and of no use once the task has ended.
snapshots = Table(
    "tracking_snapshots",
    metadata,
    Column("task_id", Key, ForeignKey("tracking_tasks.id"), primary_key=True),
    Column("content", Text, nullable=False),
)

decisions = Table(
    "tracking_decisions",
    metadata,
    _position(),
    Column("id", Key, nullable=False, unique=True),
    Column("workflow_id", Key, ForeignKey("tracking_workflows.id"), nullable=False),
    Column("task_id", Key, ForeignKey("tracking_tasks.id"), nullable=False),
    Column("category", Key, nullable=False),
    Column("question", Text, nullable=False),
    Column("options_considered", JSON, nullable=False),
    Column("chosen", Text, nullable=False),
    Column("reasoning", Text, nullable=False),
    Column("trade_offs", Text),
    Column("created_at", Milliseconds, nullable=False),
    Index("tracking_decisions_workflow", "workflow_id", "created_at", "position"),
)

issues = Table(
    "tracking_issues",
    metadata,
    _position(),
    Column("id", Key, nullable=False, unique=True),
    Column("workflow_id", Key, ForeignKey("tracking_workflows.id"), nullable=False),
    Column("task_id", Key, ForeignKey("tracking_tasks.id"), nullable=False),
    Column("type", Key, nullable=False),
    Column("description", Text, nullable=False),
    Column("resolution", Text, nullable=False),
    Column("requires_human_review", Boolean, nullable=False),
    Column("created_at", Milliseconds, nullable=False),
    Column("resolved_at", Milliseconds),
    Column("resolved_by", Text),
    Column("resolved_note", Text),
    Index("tracking_issues_workflow", "workflow_id", "created_at", "position"),
    Index("tracking_issues_blockers", "requires_human_review", "resolved_at"),
)

milestones = Table(
    "tracking_milestones",
    metadata,
    _position(),
    Column("id", Key, nullable=False, unique=True),
    Column("workflow_id", Key, ForeignKey("tracking_workflows.id"), nullable=False),
    Column("task_id", Key, ForeignKey("tracking_tasks.id"), nullable=False),
    Column("message", Text, nullable=False),
    Column("progress", JSON),
    Column("metadata", JSON),
    Column("created_at", Milliseconds, nullable=False),
    Index("tracking_milestones_workflow", "workflow_id", "created_at", "position"),
)
