"""Workflows, tasks, agents and what belongs to them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from deepwork_sql.columns import JSON, Key, Milliseconds

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "orchestration_agents",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("runtime", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("status", Key, nullable=False),
        sa.Column("capabilities", JSON),
        sa.Column("current_task_id", Key),
        sa.Column("workspace_path", sa.Text),
        sa.Column("last_heartbeat", Milliseconds, nullable=False),
        sa.Column("metadata", JSON),
        sa.Column("lost_task_ids", JSON),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("updated_at", Milliseconds, nullable=False),
    )
    op.create_table(
        "orchestration_repositories",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("path", Key, nullable=False, unique=True),
        sa.Column("name", sa.Text),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("updated_at", Milliseconds, nullable=False),
    )
    op.create_table(
        "orchestration_templates",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("name", Key, nullable=False, unique=True),
        sa.Column("description", sa.Text),
        sa.Column("template", JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("updated_at", Milliseconds, nullable=False),
    )
    op.create_table(
        "orchestration_messages",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("sender_id", Key, sa.ForeignKey("orchestration_agents.id")),
        sa.Column("recipient_id", Key, sa.ForeignKey("orchestration_agents.id"), nullable=False),
        sa.Column("message_type", sa.Text, nullable=False),
        sa.Column("subject", sa.Text),
        sa.Column("body", JSON, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("status", Key, nullable=False),
        sa.Column("workflow_id", Key),
        sa.Column("task_id", Key),
        sa.Column("reply_to_id", Key),
        sa.Column("thread_id", Key, nullable=False),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("read_at", Milliseconds),
        sa.Column("expires_at", Milliseconds),
    )
    op.create_index("ix_orchestration_messages_sender_id", "orchestration_messages", ["sender_id"])
    op.create_index("ix_orchestration_messages_thread_id", "orchestration_messages", ["thread_id"])
    op.create_index("orchestration_messages_inbox", "orchestration_messages", ["recipient_id", "status", "number"])
    op.create_table(
        "orchestration_workflows",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("repository_id", Key, sa.ForeignKey("orchestration_repositories.id")),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("source_type", sa.Text, nullable=False),
        sa.Column("source_ref", sa.Text),
        sa.Column("source_content", sa.Text, nullable=False),
        sa.Column("status", Key, nullable=False),
        sa.Column("initial_plan", JSON),
        sa.Column("plan_summary", sa.Text),
        sa.Column("max_parallel_tasks", sa.Integer, nullable=False),
        sa.Column("auto_create_workspaces", sa.Boolean, nullable=False),
        sa.Column("config", JSON),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("updated_at", Milliseconds, nullable=False),
    )
    op.create_index("ix_orchestration_workflows_repository_id", "orchestration_workflows", ["repository_id"])
    op.create_table(
        "orchestration_tasks",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("workflow_id", Key, sa.ForeignKey("orchestration_workflows.id"), nullable=False),
        sa.Column("name", Key, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("status", Key, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("parallel_group", Key),
        sa.Column("plan", JSON),
        sa.Column("plan_summary", sa.Text),
        sa.Column("context", JSON),
        sa.Column("outcome", sa.Text),
        sa.Column("outcome_detail", JSON),
        sa.Column("error", sa.Text),
        sa.Column("required_capabilities", JSON),
        sa.Column("open_dependencies", sa.Integer, nullable=False),
        sa.Column("workspace_id", Key),
        sa.Column("assigned_agent_id", Key),
        sa.Column("claimed_at", Milliseconds),
        sa.Column("claimed_by", sa.Text),
        sa.Column("fence", sa.BigInteger),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("updated_at", Milliseconds, nullable=False),
        sa.UniqueConstraint("workflow_id", "name"),
    )
    op.create_index("ix_orchestration_tasks_assigned_agent_id", "orchestration_tasks", ["assigned_agent_id"])
    op.create_index("orchestration_tasks_available", "orchestration_tasks", ["status", "open_dependencies", "sequence"])
    op.create_index("orchestration_tasks_in_order", "orchestration_tasks", ["workflow_id", "sequence"])
    op.create_table(
        "orchestration_workspaces",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("workflow_id", Key, sa.ForeignKey("orchestration_workflows.id"), nullable=False),
        sa.Column("path", Key, nullable=False),
        sa.Column("branch", sa.Text, nullable=False),
        sa.Column("base_branch", sa.Text),
        sa.Column("status", Key, nullable=False),
        sa.Column("merge_commit", sa.Text),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.Column("updated_at", Milliseconds, nullable=False),
    )
    op.create_index("ix_orchestration_workspaces_path", "orchestration_workspaces", ["path"])
    op.create_index("ix_orchestration_workspaces_workflow_id", "orchestration_workspaces", ["workflow_id"])
    op.create_table(
        "orchestration_checkpoints",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("id", Key, nullable=False, unique=True),
        sa.Column("task_id", Key, sa.ForeignKey("orchestration_tasks.id"), nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("checkpoint_type", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("detail", JSON),
        sa.Column("files_changed", JSON),
        sa.Column("created_at", Milliseconds, nullable=False),
        sa.UniqueConstraint("task_id", "sequence"),
    )
    op.create_table(
        "orchestration_dependencies",
        sa.Column("task_id", Key, sa.ForeignKey("orchestration_tasks.id"), primary_key=True),
        sa.Column("depends_on_id", Key, sa.ForeignKey("orchestration_tasks.id"), primary_key=True),
        sa.Column("type", sa.Text, nullable=False),
    )
    op.create_index("ix_orchestration_dependencies_depends_on_id", "orchestration_dependencies", ["depends_on_id"])
