"""The tables of this plugin. What is indexed stands in the migrations alone, which make the tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, String, Table, Text

from deepwork_sql.columns import JSON, Key, Milliseconds

metadata = MetaData()

schemas = Table(
    "deepwork_schemas",
    metadata,
    Column("name", Key, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("oldest_release", String, nullable=False),
    Column("migrated_by", String, nullable=False),
    Column("migrated_at", Milliseconds, nullable=False),
)

# One row: what is added to the transaction ids of the cluster, so that the feed goes on after a restore elsewhere.
feeds = Table(
    "deepwork_feed",
    metadata,
    Column("only", Boolean, primary_key=True),
    Column("offset", BigInteger, nullable=False),
)

events = Table(
    "deepwork_events",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("xid", BigInteger, nullable=False),
    Column("source", Key, nullable=False),
    Column("event", String, nullable=False),
    Column("workflow_id", Key),
    Column("at", Milliseconds, nullable=False),
    Column("principal", String),
    Column("data", JSON, nullable=False),
)

requests = Table(
    "deepwork_requests",
    metadata,
    Column("principal", Key, primary_key=True),
    Column("tool", Key, primary_key=True),
    Column("request_id", Key, primary_key=True),
    Column("arguments", String, nullable=False),
    Column("result", JSON),
    Column("at", Milliseconds, nullable=False),
)

leases = Table(
    "deepwork_leases",
    metadata,
    Column("item", Key, primary_key=True),
    Column("fence", BigInteger, nullable=False),
    Column("holder", Key),
    Column("expires_at", Milliseconds, nullable=False),
)

sessions = Table(
    "deepwork_sessions",
    metadata,
    Column("machine", Key, primary_key=True),
    Column("project", Key, primary_key=True),
    Column("session_id", Key, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("status", Key, nullable=False),
    Column("updated_at", Key, nullable=False),
    Column("history_length", Integer, nullable=False),
    Column("archived", Boolean, nullable=False),
    Column("damaged", Boolean, nullable=False),
    Column("summary", Text, nullable=False),
    Column("document", Text, nullable=False),
)
