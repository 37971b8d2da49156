"""Agents that go: they sign off, are set offline, or are not heard of in time. With them go their claims."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deepwork_orchestration import agents, messages
from deepwork_orchestration.agents import actor, renew_leases
from deepwork_orchestration.arguments import KEEP, Id, Object, Text
from deepwork_orchestration.claims import held_by, outdate, release, reopen
from deepwork_orchestration.database import CLAIMED
from deepwork_orchestration.errors import some
from deepwork_orchestration.models import Agent, Mapped, Task
from deepwork_orchestration.sql import Filters
from deepwork_orchestration.states import AgentStatus
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql import leases

_BATCH = 200
# An agent is told of so many of the tasks that it has lost: the last that it has claimed.
MAX_LOST = 1000


def agent_update(
    transaction: PlanTransaction,
    /,
    id: Id,  # noqa: A002
    *,
    status: AgentStatus | None = None,
    current_task_id: Annotated[Id | None, Field(default_factory=lambda: KEEP)],
    workspace_path: Text | None = None,
    metadata: Object | None = None,
) -> Mapped:
    """Change an agent; online brings one back that was lost. metadata is merged."""
    agent = actor(transaction, id)
    values: Mapped = {}
    if current_task_id is not KEEP:
        task = None if current_task_id is None else transaction.get(Task, current_task_id)
        values["current_task_id"] = task and task.id
    if workspace_path is not None:
        values["workspace_path"] = agents.checked_folder(workspace_path)
    if metadata is not None:
        values["metadata"] = {**(agent.metadata or {}), **metadata}
    if status == "offline":
        _take_offline(transaction, agent, "the agent was set offline")
        values.pop("current_task_id", None)
    elif status is not None:
        values |= {"status": status, "lost_task_ids": None, "last_heartbeat": transaction.now}
    renew_leases(transaction, agent)
    transaction.emit("agent:updated", None, agents.event(transaction.change(Agent, id, **values)))
    return {"success": True}


def agent_unregister(transaction: PlanTransaction, /, id: Id) -> Mapped:  # noqa: A002
    """Sign an agent off; its unfinished tasks are pending again."""
    released = _take_offline(transaction, actor(transaction, id), "the agent has signed off")
    return {"success": True, "tasks_released": len(released)}


def _take_offline(transaction: PlanTransaction, agent: Agent, reason: str) -> list[Task]:
    """Make an agent offline, end its claims, and return their tasks."""
    held = held_by(transaction, agent.id)
    for task in held:
        release(transaction, task, reason)
    transaction.change(Agent, agent.id, status="offline", current_task_id=None)
    if agent.status != "offline":
        _emit_offline(transaction, agent, held)
    return held


def end_overdue_claims(transaction: PlanTransaction) -> None:
    """End all claims whose lease has run out. Every call does this first, if there are any."""
    while expired := leases.expired(transaction.stored, CLAIMED, _BATCH):
        for lease in expired:
            outdate(transaction, lease.item)
        for agent_id in dict.fromkeys(lease.holder for lease in expired):
            _lose(transaction, transaction.get(Agent, agent_id))


def _lose(transaction: PlanTransaction, agent: Agent) -> None:
    """End the claims of an agent that has not been heard of, and tell the coordinators."""
    lost = held_by(transaction, agent.id)
    for task in lost:
        reopen(transaction, task, f"The lease of agent {agent.name!r} ({agent.id}) ran out")
        data = {"id": task.id, "name": task.name, "agent_id": agent.id}
        transaction.emit("task:lost", task.workflow_id, data)
    noted = [task.id for task in lost[-MAX_LOST:]]
    transaction.change(Agent, agent.id, status="offline", current_task_id=None, lost_task_ids=noted)
    _emit_offline(transaction, agent, lost)
    _tell_coordinators(transaction, agent, lost)


def _emit_offline(transaction: PlanTransaction, agent: Agent, tasks: list[Task]) -> None:
    data = {"id": agent.id, "name": agent.name, "task_ids": [task.id for task in tasks]}
    transaction.emit("agent:offline", None, data)


def _tell_coordinators(transaction: PlanTransaction, agent: Agent, lost: list[Task]) -> None:
    names = some([f"{task.name!r} ({task.id})" for task in lost])
    coordinators = Filters(role="coordinator").one_of("status", ["online", "busy"])
    for coordinator_id in agents.ids(transaction, coordinators):
        messages.deliver(
            transaction,
            recipient_id=coordinator_id,
            message_type="notification",
            subject=f"Agent {agent.name} lost its claims",
            body=f"Agent {agent.name!r} ({agent.id}) was not heard of in time and is offline. Free again: {names}.",
            priority="high",
            workflow_id=lost[0].workflow_id if lost else None,
            task_id=lost[0].id if lost else None,
        )
