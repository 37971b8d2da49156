"""Rows of this plugin: `tools/dump_schema.py` makes the dumps in `data/schemas` from them."""

from __future__ import annotations

from deepwork.api import Session
from deepwork_sql import Transaction, leases
from deepwork_sql.session_rows import SessionRows

SESSION = {
    "schema_version": 1,
    "session_id": "s1",
    "job_name": "demo",
    "workflow_name": "main",
    "current_step_id": "a",
    "started_at": "2026-01-01T12:00:00.000000+00:00",
    "updated_at": "2026-01-01T12:00:00.000000+00:00",
    "goal": "Größe, 数据",
    "history": [{"at": "2026-01-01T12:00:00.000000+00:00", "kind": "started", "detail": {"n": 1}}],
}


def rows(transaction: Transaction) -> None:
    """Write at least one row into each table."""
    SessionRows("laptop", "/projects/demo").save(transaction, Session.model_validate(SESSION), None)
    transaction.emit("acme", "task:done", workflow_id="wf_1", data={"b": [1, None], "a": "ü"}, principal="ada")
    leases.take(transaction, "t1", holder="ada", milliseconds=1000)
    transaction.once(principal="ada", tool="claim", request_id="r1", arguments={"n": 1}, work=lambda: {"task": "t1"})
