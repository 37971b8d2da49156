"""Plans that a person has paused: no task of them is handed out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepwork.models.standing import paused_text
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.models import Workflow
from deepwork_orchestration.sql import sql
from deepwork_orchestration.transaction import PlanTransaction

_PAUSES = "FROM orchestration_pauses"
_PAUSE = sql(f"SELECT reason {_PAUSES} WHERE workflow_id = :workflow_id")
_ADD = sql("INSERT INTO orchestration_pauses (workflow_id, reason, paused_at) VALUES (:workflow_id, :reason, :now)")
_REMOVE = sql(f"DELETE {_PAUSES} WHERE workflow_id = :workflow_id")
_OF_AGENT = sql(
    f"SELECT p.workflow_id, p.reason, p.paused_at, w.name {_PAUSES} AS p "
    "JOIN orchestration_workflows AS w ON w.id = p.workflow_id "
    "WHERE EXISTS (SELECT 1 FROM orchestration_tasks AS t "
    "WHERE t.workflow_id = p.workflow_id AND t.assigned_agent_id = :agent_id) ORDER BY p.paused_at, p.workflow_id"
)


def pause(transaction: PlanTransaction, workflow_id: str, reason: str) -> Workflow:
    """Hand out no task of a plan until it is unpaused.

    Raises:
        OrchestrationError: The plan is unknown, over, or paused already.
    """
    workflow = transaction.get(Workflow, workflow_id)
    if workflow.status in ("completed", "abandoned"):
        raise _refused(f"plan {workflow_id} is {workflow.status!r}")
    if transaction.row(_PAUSE, workflow_id=workflow_id) is not None:
        raise _refused(f"plan {workflow_id} is paused already")
    transaction.run(_ADD, workflow_id=workflow_id, reason=reason, now=transaction.now)
    transaction.emit("workflow:paused", workflow_id, {**workflow.summary(), "reason": reason})
    return workflow


def unpause(transaction: PlanTransaction, workflow_id: str) -> Workflow:
    """Hand out the tasks of a paused plan again.

    Raises:
        OrchestrationError: The plan is unknown, or not paused.
    """
    workflow = transaction.get(Workflow, workflow_id)
    if not transaction.run(_REMOVE, workflow_id=workflow_id):
        raise _refused(f"plan {workflow_id} is not paused")
    transaction.emit("workflow:unpaused", workflow_id, workflow.summary())
    return workflow


def check(transaction: PlanTransaction, workflow_id: str) -> None:
    """Refuse to hand out a task of a paused plan.

    Raises:
        OrchestrationError: PLAN_PAUSED.
    """
    row = transaction.row(_PAUSE, workflow_id=workflow_id)
    if row is not None:
        raise OrchestrationError(
            "PLAN_PAUSED", paused_text(row.reason, "plan"), "Take a task of another workflow, or end your turn."
        )


def of_agent(transaction: PlanTransaction, agent_id: str) -> Sequence[Any]:
    """Return the pauses of the plans in which an agent holds a task, the oldest first."""
    return transaction.rows(_OF_AGENT, agent_id=agent_id)


def _refused(problem: str) -> OrchestrationError:
    return OrchestrationError("INVALID_STATE", f"{problem}; nothing was changed")
