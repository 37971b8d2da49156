"""Rows of this plugin: `tools/dump_schema.py` makes the dumps in `data/schemas` from them."""

from __future__ import annotations

from typing import Any

from deepwork_sql import Transaction
from deepwork_tracking import log, phases, tasks, workflows
from deepwork_tracking.arguments import Outcome, TaskMetadata
from deepwork_tracking.changes import FileChanges
from deepwork_tracking.snapshots import TreeSnapshot


def rows(transaction: Transaction) -> None:
    """Write at least one row into each table: a workflow with one task that has ended and another that runs."""
    by: dict[str, Any] = {"principal": "local"}
    texts = {"name": "Größe", "objective": "数据", "scope": None, "constraints": "c"}
    workflow = workflows.start_workflow(transaction, profile="simple", total_phases=None, **texts, **by)
    place = {"workflow_id": workflow["workflow_id"]}
    phase = phases.start_phase(transaction, place["workflow_id"], 1, name="p", description="d", is_parallel=True, **by)
    snapshot = TreeSnapshot(type="git", id="0" * 40, machine="laptop", toplevel="/projects/demo", states={"a": None})
    who = {"caller_type": "subagent", "agent_name": "ann", "parent_task_id": None, "phase_id": phase["phase_id"]}
    more = {"goal": "g", "areas": ["src"], **who, **place}
    ended = tasks.begin(transaction, tasks.NewTask(name="ended", **more), snapshot, "local")["task_id"]
    tasks.begin(transaction, tasks.NewTask(name="running", **more), snapshot, "local")
    outcome, metadata = Outcome(summary="s", achievements=["a"]), TaskMetadata(tests_status="passed")
    changes = FileChanges(added=("src/é",), modified=("b",))
    end = tasks.EndOfTask(ended, "success", outcome, metadata)
    tasks.finish(transaction, place["workflow_id"], end, changes, "local")
    decision = {"category": "OTHER", "question": "q", "chosen": "c", "reasoning": "r", "trade_offs": None}
    log.log_decision(transaction, ended, options_considered=["c"], **decision, **by)
    issue = {"type": "BUG", "description": "d", "resolution": "r", "requires_human_review": True}
    log.log_issue(transaction, ended, **issue, **by)
    log.log_milestone(transaction, ended, message="m", progress=12.5, metadata={"b": [1, None], "a": "ü"}, **by)
