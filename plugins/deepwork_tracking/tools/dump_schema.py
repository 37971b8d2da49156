"""Write what the current schema looks like, with rows in it: `python plugins/deepwork_tracking/tools/dump_schema.py`.

Run it when a migration has landed, and commit the two files: tests upgrade every one of them, on both engines. It uses
the tool of the same name of the plugin `sql`, with rows of this plugin.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from deepwork_sql import Transaction
from deepwork_tracking import log, phases, tasks, workflows
from deepwork_tracking.arguments import Outcome, TaskMetadata
from deepwork_tracking.changes import FileChanges
from deepwork_tracking.schema import SCHEMA
from deepwork_tracking.snapshots import Snapshot

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent.parent / "tests" / "data" / "schemas"


def rows(transaction: Transaction) -> None:
    """Write at least one row into each table: a workflow with a task that has ended and one that runs."""
    by: dict[str, Any] = {"principal": "local"}
    texts = {"name": "Größe", "objective": "数据", "scope": None, "constraints": "c"}
    workflow = workflows.start_workflow(transaction, profile="simple", total_phases=None, **texts, **by)
    place = {"workflow_id": workflow["workflow_id"]}
    phase = phases.start_phase(transaction, place["workflow_id"], 1, name="p", description="d", is_parallel=True, **by)
    snapshot = Snapshot(type="git", id="0" * 40, machine="laptop", toplevel="/projects/demo", states={"a": None})
    who = {"caller_type": "subagent", "agent_name": "ann", "parent_task_id": None, "phase_id": phase["phase_id"]}
    more = {"goal": "g", "areas": ["src"], **who, **place, **by}
    ended = tasks.start_task(transaction, snapshot, name="ended", **more)["task_id"]
    tasks.start_task(transaction, snapshot, name="running", **more)
    outcome, metadata = Outcome(summary="s", achievements=["a"]), TaskMetadata(tests_status="passed")
    changes = FileChanges(added=("src/é",), modified=("b",))
    tasks.complete_task(transaction, ended, changes, status="success", outcome=outcome, metadata=metadata, **by)
    decision = {"category": "OTHER", "question": "q", "chosen": "c", "reasoning": "r", "trade_offs": None}
    log.log_decision(transaction, ended, options_considered=["c"], **decision, **by)
    issue = {"type": "BUG", "description": "d", "resolution": "r", "requires_human_review": True}
    log.log_issue(transaction, ended, **issue, **by)
    log.log_milestone(transaction, ended, message="m", progress=12.5, metadata={"b": [1, None], "a": "ü"}, **by)


def main() -> None:
    """Write both files."""
    place = ROOT / "plugins" / "deepwork_sql" / "tools" / "dump_schema.py"
    spec = importlib.util.spec_from_file_location("dump_schema_of_sql", place)
    assert spec
    assert spec.loader
    dump = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dump)
    dump.rows, dump.FOLDER, dump.SCHEMA = rows, FOLDER, SCHEMA
    dump.main()


if __name__ == "__main__":
    main()
