"""Plans that a person has paused: no task of them is handed out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepwork.models.standing import paused_text
from deepwork_orchestration import agents, messages
from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.models import Workflow
from deepwork_orchestration.sql import sql
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql import Transaction

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
_HOLDERS = sql(
    "SELECT DISTINCT assigned_agent_id FROM orchestration_tasks "
    "WHERE workflow_id = :workflow_id AND assigned_agent_id IS NOT NULL"
)


def pause(transaction: PlanTransaction, workflow_id: str, reason: str) -> Workflow:
    """Hand out no task of a plan until it is unpaused.

    Raises:
        OrchestrationError: The plan is unknown, over, or paused already.
    """
    workflow = transaction.get(Workflow, workflow_id)
    if workflow.status in ("completed", "abandoned"):
        raise _refused(f"plan {workflow_id} is {workflow.status!r}")
    if reason_of(transaction.stored, workflow_id) is not None:
        raise _refused(f"plan {workflow_id} is paused already")
    transaction.run(_ADD, workflow_id=workflow_id, reason=reason, now=transaction.now)
    transaction.emit("workflow:paused", workflow_id, {**workflow.summary(), "reason": reason})
    return workflow


def unpause(transaction: PlanTransaction, workflow_id: str, text: str | None = None) -> Workflow:
    """Hand out the tasks of a paused plan again, and send a text to agents that hold one.

    Raises:
        OrchestrationError: The plan is unknown, or not paused.
    """
    workflow = transaction.get(Workflow, workflow_id)
    if not transaction.run(_REMOVE, workflow_id=workflow_id):
        raise _refused(f"plan {workflow_id} is not paused")
    transaction.emit("workflow:unpaused", workflow_id, workflow.summary())
    if text is not None:
        _tell_holders(transaction, workflow, text)
    return workflow


def check(transaction: PlanTransaction, workflow_id: str) -> None:
    """Refuse to hand out a task of a paused plan.

    Raises:
        OrchestrationError: PLAN_PAUSED.
    """
    reason = reason_of(transaction.stored, workflow_id)
    if reason is not None:
        raise OrchestrationError(
            "PLAN_PAUSED", paused_text(reason, "plan"), "Take a task of another workflow, or end your turn."
        )


def reason_of(transaction: Transaction, workflow_id: str) -> str | None:
    """Return why a person has paused a plan; None if it is not paused."""
    row = transaction.row(_PAUSE, workflow_id=workflow_id)
    return None if row is None else str(row.reason)


def of_agent(transaction: PlanTransaction, agent_id: str) -> Sequence[Any]:
    """Return the pauses of the plans in which an agent holds a task, the oldest first."""
    return transaction.rows(_OF_AGENT, agent_id=agent_id)


def _tell_holders(transaction: PlanTransaction, workflow: Workflow, text: str) -> None:
    sender = agents.person(transaction, transaction.principal)
    for row in transaction.rows(_HOLDERS, workflow_id=workflow.id):
        messages.deliver(
            transaction,
            sender_id=sender.id,
            recipient_id=row.assigned_agent_id,
            message_type="notification",
            subject=f"The plan {workflow.name} goes on",
            body=text,
            workflow_id=workflow.id,
        )


def _refused(problem: str) -> OrchestrationError:
    return OrchestrationError("INVALID_STATE", f"{problem}; nothing was changed")
