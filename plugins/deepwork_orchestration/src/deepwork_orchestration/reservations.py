"""Reservations: for the time of a lease, a task that a person has reserved can be claimed by one agent alone."""

from __future__ import annotations

from deepwork_orchestration.errors import OrchestrationError
from deepwork_orchestration.models import Agent, Task
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql import leases

# A lease of its own: work has not begun, so it ends no claim and makes no agent offline when it runs out.
RESERVED = "orchestration/reserved/"


def reserve(transaction: PlanTransaction, task: Task, agent: Agent) -> int:
    """Let one agent alone claim a task for the time of a lease, and return until when."""
    unreserve(transaction, task.id)
    # The holder is not the agent itself, whose calls renew all its leases.
    leases.take(transaction.stored, _item(task.id), holder=RESERVED + agent.id, milliseconds=transaction.lease)
    return transaction.now + transaction.lease


def unreserve(transaction: PlanTransaction, task_id: str) -> None:
    """Let every agent claim a task again."""
    reservation = leases.holder_of(transaction.stored, _item(task_id))
    if reservation is not None:
        end(transaction, reservation)


def end(transaction: PlanTransaction, reservation: leases.Lease) -> None:
    """End a reservation."""
    leases.end(transaction.stored, reservation.item, fence=reservation.fence)


def live(transaction: PlanTransaction) -> dict[str, str]:
    """Return, by the ids of the tasks that are reserved now, the agents that alone may claim them."""
    live = leases.live(transaction.stored, RESERVED)
    return {lease.item.removeprefix(RESERVED): lease.holder.removeprefix(RESERVED) for lease in live}


def check_reserved(transaction: PlanTransaction, task: Task, agent_id: str | None) -> leases.Lease | None:
    """Refuse what an agent does to a task that is free, but reserved for another agent.

    Returns:
        The reservation for this agent, if there is one.

    Raises:
        OrchestrationError: INVALID_STATE.
    """
    if task.assigned_agent_id is not None:
        return None
    reservation = leases.holder_of(transaction.stored, _item(task.id))
    reserved = None if reservation is None else reservation.holder.removeprefix(RESERVED)
    if reserved not in (None, agent_id):
        text = f"task {task.id} is reserved for agent {reserved}, which a person has chosen; nothing was changed"
        raise OrchestrationError("INVALID_STATE", text, "Take another task, or this one once its time is over.")
    return reservation


def _item(task_id: str) -> str:
    return RESERVED + task_id
