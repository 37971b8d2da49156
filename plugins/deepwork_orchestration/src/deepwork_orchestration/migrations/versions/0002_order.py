"""Available tasks and workflows are read in the order of an index, however many there are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the indexes, and to each task the number of its workflow."""
    op.add_column("orchestration_tasks", sa.Column("workflow_number", sa.BigInteger))
    op.execute(
        "UPDATE orchestration_tasks SET workflow_number = "
        "(SELECT number FROM orchestration_workflows WHERE id = orchestration_tasks.workflow_id)"
    )
    op.drop_index("orchestration_tasks_available", table_name="orchestration_tasks")
    op.create_index(
        "orchestration_tasks_available",
        "orchestration_tasks",
        ["status", "open_dependencies", "sequence", "workflow_number", "name"],
    )
    op.create_index("orchestration_workflows_in_order", "orchestration_workflows", ["created_at", "number"])
    op.create_index("orchestration_workflows_by_status", "orchestration_workflows", ["status", "created_at", "number"])
