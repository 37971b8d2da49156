"""Plans that a person has paused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "orchestration_pauses",
        sa.Column("workflow_id", sa.Text, sa.ForeignKey("orchestration_workflows.id"), primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("paused_at", sa.BigInteger, nullable=False),
    )
