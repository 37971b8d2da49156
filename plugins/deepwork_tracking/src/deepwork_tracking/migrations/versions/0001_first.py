"""Workflows, phases, tasks with their snapshots, and what they have logged."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from deepwork_sql.columns import JSON, Key, Milliseconds

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "tracking_workflows",
        _position(),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("objective", sa.Text, nullable=False),
        sa.Column("profile", Key, nullable=False),
        sa.Column("status", Key, nullable=False),
        sa.Column("current_phase", sa.Integer, nullable=False),
        sa.Column("total_phases", sa.Integer, nullable=False),
        sa.Column("scope", sa.Text),
        sa.Column("constraints", sa.Text),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("completed_at", Milliseconds),
        sa.Column("ended_as", Key),
        sa.Column("summary", sa.Text),
        sa.Column("achievements", JSON),
        sa.Column("limitations", JSON),
        sa.Column("metrics", JSON),
    )
    op.create_index("tracking_workflows_status", "tracking_workflows", ["status"])
    op.create_table(
        "tracking_phases",
        _position(),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("workflow_id", Key, sa.ForeignKey("tracking_workflows.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("is_parallel", sa.Boolean, nullable=False),
        sa.Column("status", Key, nullable=False),
        sa.Column("summary", sa.Text),
        sa.Column("started_at", Milliseconds, nullable=False),
        sa.Column("completed_at", Milliseconds),
        sa.UniqueConstraint("workflow_id", "number", name="tracking_phases_number"),
    )
    op.create_table(
        "tracking_tasks",
        _position(),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("workflow_id", Key, sa.ForeignKey("tracking_workflows.id"), nullable=False),
        sa.Column("phase_id", Key, sa.ForeignKey("tracking_phases.id"), nullable=False),
        sa.Column("parent_task_id", Key, sa.ForeignKey("tracking_tasks.id")),
        sa.Column("caller_type", Key, nullable=False),
        sa.Column("agent_name", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("goal", sa.Text, nullable=False),
        sa.Column("areas", JSON, nullable=False),
        sa.Column("status", Key, nullable=False),
        sa.Column("snapshot_id", sa.Text, nullable=False),
        sa.Column("snapshot_type", Key, nullable=False),
        sa.Column("started_at", Milliseconds, nullable=False),
        sa.Column("completed_at", Milliseconds),
        sa.Column("summary", sa.Text),
        sa.Column("achievements", JSON),
        sa.Column("limitations", JSON),
        sa.Column("next_steps", JSON),
        sa.Column("manual_review_needed", sa.Boolean, nullable=False),
        sa.Column("packages_added", JSON),
        sa.Column("tests_status", Key),
        sa.Column("files_changed", JSON),
        sa.Column("verification", JSON),
    )
    op.create_index("tracking_tasks_workflow", "tracking_tasks", ["workflow_id", "started_at", "position"])
    op.create_index("tracking_tasks_phase", "tracking_tasks", ["phase_id"])
    op.create_index("tracking_tasks_parent", "tracking_tasks", ["parent_task_id"])
    op.create_table(
        "tracking_snapshots",
        sa.Column("task_id", Key, sa.ForeignKey("tracking_tasks.id"), primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
    )
    op.create_table(
        "tracking_decisions",
        _position(),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("workflow_id", Key, sa.ForeignKey("tracking_workflows.id"), nullable=False),
        sa.Column("task_id", Key, sa.ForeignKey("tracking_tasks.id"), nullable=False),
        sa.Column("category", Key, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("options_considered", JSON, nullable=False),
        sa.Column("chosen", sa.Text, nullable=False),
        sa.Column("reasoning", sa.Text, nullable=False),
        sa.Column("trade_offs", sa.Text),
        sa.Column("created_at", Milliseconds, nullable=False),
    )
    op.create_index("tracking_decisions_workflow", "tracking_decisions", ["workflow_id", "created_at", "position"])
    op.create_table(
        "tracking_issues",
        _position(),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("workflow_id", Key, sa.ForeignKey("tracking_workflows.id"), nullable=False),
        sa.Column("task_id", Key, sa.ForeignKey("tracking_tasks.id"), nullable=False),
        sa.Column("type", Key, nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("resolution", sa.Text, nullable=False),
        sa.Column("requires_human_review", sa.Boolean, nullable=False),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("resolved_at", Milliseconds),
        sa.Column("resolved_by", sa.Text),
        sa.Column("resolved_note", sa.Text),
    )
    op.create_index("tracking_issues_workflow", "tracking_issues", ["workflow_id", "created_at", "position"])
    op.create_index("tracking_issues_blockers", "tracking_issues", ["requires_human_review", "resolved_at"])
    op.create_table(
        "tracking_milestones",
        _position(),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("workflow_id", Key, sa.ForeignKey("tracking_workflows.id"), nullable=False),
        sa.Column("task_id", Key, sa.ForeignKey("tracking_tasks.id"), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("progress", JSON),
        sa.Column("metadata", JSON),
        sa.Column("created_at", Milliseconds, nullable=False),
    )
    op.create_index("tracking_milestones_workflow", "tracking_milestones", ["workflow_id", "created_at", "position"])


def _position() -> sa.Column[Any]:
    return sa.Column(
        "position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
    )
