"""Write what the schema looks like, with rows in it: `python plugins/deepwork_orchestration/tools/dump_schema.py`.

Run it when a migration has landed, and commit the two files: tests upgrade every one of them, on both engines. It uses
the tool of the same name of the plugin `sql`, with rows of this plugin.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from deepwork_orchestration import agents, checkpoints, messages, tasks, templates, workflows, workspaces
from deepwork_orchestration.act import Act
from deepwork_orchestration.arguments import Plan
from deepwork_orchestration.bindings import ConnectionBindings
from deepwork_orchestration.records import Records
from deepwork_orchestration.schema import SCHEMA
from deepwork_sql import Transaction

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent.parent / "tests" / "data" / "schemas"
PLAN = {
    "summary": "数据",
    "approach": "a",
    "tasks": [
        {"name": "first", "description": "Größe", "sequence": 1, "parallel_group": "g"},
        {"name": "second", "description": "d", "sequence": 2, "depends_on": ["first"]},
        {"name": "third", "description": "d", "sequence": 3},
    ],
}


def rows(transaction: Transaction) -> None:
    """Write at least one row into each table: a workflow with a task that is done, and one that is claimed."""
    act = Act(
        transaction,
        Records(transaction),
        principal="local",
        bindings=ConnectionBindings(),
        lease=100 * 365 * 24 * 3_600_000,  # still held whenever a test looks
        project_root="/projects/demo",
    )
    workflow = workflows.workflow_create(act, "Größe", "prompt", "数据")["id"]
    workflows.workflow_set_plan(act, workflow, Plan.model_validate(PLAN))
    ids = {task.name: task.id for task in act.records.tasks(workflow)}
    agent = agents.agent_register(act, "ann", "custom", metadata={"b": [1, None], "a": "ü"})["id"]
    workspace = workspaces._create(act, workflow, "/projects/demo/w", "b", None, [ids["first"]])["id"]  # noqa: SLF001
    workspaces.task_assign_workspace(act, ids["first"], workspace)
    agents.claim(act, ids["first"], agent)
    for status in ("planning", "completed"):
        tasks.task_update_status(act, ids["first"], status, outcome="done", agent_id=agent)
    agents.claim(act, ids["second"], agent)
    checkpoints.checkpoint_add(act, ids["second"], "progress", "half", detail={"n": 1}, agent_id=agent)
    messages.message_send(act, agent, agent, "query", {"text": "?"}, workflow_id=workflow)
    templates.template_create(act, "of it", from_workflow_id=workflow)


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
