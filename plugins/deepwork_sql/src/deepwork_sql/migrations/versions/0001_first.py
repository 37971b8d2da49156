"""Sessions, events, requests and leases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from deepwork_sql.columns import JSON, Key, Milliseconds

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "deepwork_schemas",
        sa.Column("name", Key, primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("oldest_release", sa.String, nullable=False),
        sa.Column("migrated_by", sa.String, nullable=False),
        sa.Column("migrated_at", Milliseconds, nullable=False),
    )
    feed = op.create_table(
        "deepwork_feed",
        sa.Column("only", sa.Boolean, primary_key=True),
        sa.Column("offset", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(feed, [{"only": True, "offset": 0}])
    op.create_table(
        "deepwork_events",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("xid", sa.BigInteger, nullable=False),
        sa.Column("source", Key, nullable=False),
        sa.Column("event", sa.String, nullable=False),
        sa.Column("workflow_id", Key),
        sa.Column("at", Milliseconds, nullable=False),
        sa.Column("principal", sa.String),
        sa.Column("data", JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("deepwork_events_order", "deepwork_events", ["xid", "seq"])
    op.create_index("deepwork_events_workflow", "deepwork_events", ["workflow_id", "xid", "seq"])
    op.create_table(
        "deepwork_requests",
        sa.Column("principal", Key, primary_key=True),
        sa.Column("tool", Key, primary_key=True),
        sa.Column("request_id", Key, primary_key=True),
        sa.Column("arguments", sa.String, nullable=False),
        sa.Column("result", JSON),
        sa.Column("at", Milliseconds, nullable=False),
    )
    op.create_index("deepwork_requests_at", "deepwork_requests", ["at"])
    op.create_table(
        "deepwork_leases",
        sa.Column("item", Key, primary_key=True),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("holder", Key),
        sa.Column("expires_at", Milliseconds, nullable=False),
    )
    op.create_index("deepwork_leases_holder", "deepwork_leases", ["holder"])
    # Every call of some plugins looks for leases that have run out; given back ones stay, for their fences.
    live = sa.text("holder IS NOT NULL")
    op.create_index(
        "deepwork_leases_expiry", "deepwork_leases", ["expires_at"], sqlite_where=live, postgresql_where=live
    )
    op.create_table(
        "deepwork_sessions",
        sa.Column("machine", Key, primary_key=True),
        sa.Column("project", Key, primary_key=True),
        sa.Column("session_id", Key, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("schema_version", sa.Integer, nullable=False),
        sa.Column("status", Key, nullable=False),
        sa.Column("updated_at", Key, nullable=False),
        sa.Column("history_length", sa.Integer, nullable=False),
        sa.Column("archived", sa.Boolean, nullable=False),
        sa.Column("damaged", sa.Boolean, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("deepwork_sessions_listing", "deepwork_sessions", ["machine", "project", "archived", "updated_at"])
    op.create_index("deepwork_sessions_id", "deepwork_sessions", ["session_id"])
