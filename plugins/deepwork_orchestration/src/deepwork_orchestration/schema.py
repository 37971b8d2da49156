"""What this plugin adds to the database: found by `deepwork_sql`, which migrates it at its first use."""

from __future__ import annotations

from deepwork_sql.schema import Schema

SCHEMA = Schema(
    name="orchestration", migrations="deepwork_orchestration.migrations", version=3, oldest_release="1.0.0.dev0"
)
