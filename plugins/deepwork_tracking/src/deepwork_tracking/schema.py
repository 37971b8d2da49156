"""The schema of this plugin, which `deepwork_sql` migrates."""

from __future__ import annotations

from deepwork_sql.schema import Schema

SCHEMA = Schema(name="tracking", migrations="deepwork_tracking.migrations", version=1, oldest_release="1.0.0.dev0")
