"""Rows of this plugin: `tools/dump_schema.py` makes the dumps in `data/schemas` from them."""

from __future__ import annotations

from deepwork_orchestration import agents, claims, messages, pauses, tasks, templates, workflows, workspaces
from deepwork_orchestration.arguments import Plan
from deepwork_orchestration.bindings import ConnectionBindings
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql import Transaction

PLAN = {
    "summary": "数据",
    "approach": "a",
    "tasks": [
        {"name": "first", "description": "Größe", "sequence": 1, "parallel_group": "g"},
        {"name": "second", "description": "d", "sequence": 2, "depends_on": ["first"]},
        {"name": "third", "description": "d", "sequence": 3},
    ],
}


def rows(stored: Transaction) -> None:
    """Write at least one row into each table: a workflow with one task done and one claimed."""
    transaction = PlanTransaction(
        stored,
        principal="local",
        bindings=ConnectionBindings(),
        lease=100 * 365 * 24 * 3_600_000,  # still held whenever a test looks
        project_root="/projects/demo",
    )
    workflow = workflows.workflow_create(transaction, "Größe", "prompt", "数据")["id"]
    workflows.workflow_set_plan(transaction, workflow, Plan.model_validate(PLAN))
    ids = {task.name: task.id for task in tasks.of_workflow(transaction, workflow)}
    agent = agents.agent_register(transaction, "ann", "custom", metadata={"b": [1, None], "a": "ü"})["id"]
    new = workspaces.NewWorkspace(workflow, "b", None, [ids["first"]])
    workspace = workspaces.create(transaction, new, "/projects/demo/w")["id"]
    workspaces.task_assign_workspace(transaction, ids["first"], workspace)
    claims.claim(transaction, ids["first"], agent)
    for status in ("planning", "completed"):
        tasks.task_update_status(transaction, ids["first"], status, outcome="done", agent_id=agent)
    claims.claim(transaction, ids["second"], agent)
    tasks.checkpoint_add(transaction, ids["second"], "progress", "half", detail={"n": 1}, agent_id=agent)
    messages.message_send(transaction, agent, agent, "query", {"text": "?"}, workflow_id=workflow)
    templates.template_create(transaction, "of it", from_workflow_id=workflow)
    paused = workflows.workflow_create(transaction, "paused", "prompt", "p")["id"]
    pauses.pause(transaction, paused, "数据")
