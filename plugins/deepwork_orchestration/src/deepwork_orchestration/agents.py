"""Agents: how they register, in whose name a call acts, and how their leases are renewed by their calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from deepwork_orchestration.arguments import AgentName, Id, Object, Role, Runtime, Text, Texts
from deepwork_orchestration.errors import OrchestrationError, invalid_input, some
from deepwork_orchestration.limits import omitted
from deepwork_orchestration.models import Agent, Mapped, Task
from deepwork_orchestration.repositories import normalized
from deepwork_orchestration.sql import Filters, columns, listing, sql
from deepwork_orchestration.states import HUMAN, PERSON, AgentStatus
from deepwork_orchestration.transaction import PlanTransaction
from deepwork_sql import leases

MAX_HEARTBEAT_MS = 30_000
# In the metadata of an agent: the session of a workflow for which it was started.
SESSION = "session_id"
REVIVE = 'Call agent_update with status "online", then claim anew what you want to go on with.'
IS_PERSON = f"substr(principal, 1, {len(PERSON)}) = '{PERSON}'"

_ALL = "FROM orchestration_agents"
_NAMED = sql(f"SELECT {columns(Agent)} {_ALL} WHERE id = :name OR name = :name ORDER BY number")
_PEOPLE = sql(f"SELECT {columns(Agent)} {_ALL} WHERE {IS_PERSON} ORDER BY number")


# The tools.


def agent_register(
    transaction: PlanTransaction,
    /,
    name: AgentName,
    runtime: Runtime,
    role: Role = "worker",
    capabilities: Texts | None = None,
    workspace_path: Text | None = None,
    metadata: Object | None = None,
) -> Mapped:
    """Register an agent, once at its start."""
    if name.startswith(PERSON):
        raise invalid_input("name", f"{name!r} is a name of a person", "Choose a name that tells what you do.")
    if transaction.session_id:
        metadata = {**(metadata or {}), SESSION: transaction.session_id}
    agent = _add(
        transaction,
        name=name,
        runtime=runtime,
        role=role,
        capabilities=capabilities,
        workspace_path=checked_folder(workspace_path),
        metadata=metadata,
        principal=transaction.principal,
    )
    return {"id": agent.id, "name": name, "status": "online"}


def agent_heartbeat(
    transaction: PlanTransaction,
    /,
    agent_id: Id,
    current_task_id: Id | None = None,
    status: Literal["online", "busy"] | None = None,
) -> Mapped:
    """Keep an agent online and its claims alive. Any call that names the agent does too."""
    agent = actor(transaction, agent_id)
    check_online(agent)
    values: Mapped = {} if status is None else {"status": status}
    if current_task_id is not None:
        values["current_task_id"] = transaction.get(Task, current_task_id).id
    renew_leases(transaction, agent)
    if values:
        transaction.change(Agent, agent_id, **values)
    return {"success": True, "next_heartbeat_ms": min(transaction.lease // 3, MAX_HEARTBEAT_MS)}


def agent_get(transaction: PlanTransaction, /, id: Id) -> Mapped:  # noqa: A002
    """Get an agent."""
    return transaction.get(Agent, id).reply()


def agent_list(
    transaction: PlanTransaction,
    /,
    status: list[AgentStatus] | None = None,
    role: Role | None = None,
    runtime: Text | None = None,
) -> Mapped:
    """List agents, online and offline, oldest first."""
    agents, left_out = listed(transaction, Filters(role=role, runtime=runtime).one_of("status", status))
    return {"agents": [agent.reply() for agent in agents], **omitted("agents", left_out)}


# Which agents there are.


def listed(transaction: PlanTransaction, filters: Filters) -> tuple[list[Agent], int]:
    """Return the agents that fit, the oldest first, and how many are left out."""
    agents = listing(Agent, f"{_ALL} {filters.where()} ORDER BY created_at, number LIMIT :limit")
    return transaction.some_of(Agent, agents, **filters.arguments)


def ids(transaction: PlanTransaction, filters: Filters) -> list[str]:
    """Return the ids of all agents that fit, the oldest first."""
    statement = sql(f"SELECT id {_ALL} {filters.where()} ORDER BY created_at, number")
    return [row.id for row in transaction.rows(statement, **filters.arguments)]


def named(transaction: PlanTransaction, name: str) -> list[Agent]:
    """Return the agents of this id or name, without people's."""
    return [agent for agent in transaction.all(Agent, _NAMED, name=name) if not agent.is_person]


def people(transaction: PlanTransaction) -> list[Agent]:
    """Return the agents that stand for people."""
    return transaction.all(Agent, _PEOPLE)


def person(transaction: PlanTransaction, principal: str) -> Agent:
    """Find the agent that stands for a person, or make it."""
    agent = next((agent for agent in people(transaction) if agent.principal == principal), None)
    if agent is None:
        values: Mapped = {"name": principal, "runtime": "custom", "role": "worker", "metadata": {HUMAN: True}}
        agent = _add(transaction, **values, principal=principal)
    elif agent.status == "offline":
        values = {"status": "online", "lost_task_ids": None, "last_heartbeat": transaction.now}
        agent = transaction.change(Agent, agent.id, **values)
        transaction.emit("agent:updated", None, event(agent))
    return agent


def _add(transaction: PlanTransaction, **values: Any) -> Agent:
    agent = transaction.add(Agent, status="online", last_heartbeat=transaction.now, **values)
    data = {"id": agent.id, "name": agent.name, "runtime": agent.runtime, "role": agent.role}
    transaction.emit("agent:registered", None, data)
    return agent


# In whose name a call acts.


def actor(transaction: PlanTransaction, agent_id: str, kind: str = "agent") -> Agent:
    """Return the agent that a call acts for.

    Raises:
        OrchestrationError: AGENT_NOT_FOUND; INVALID_STATE for a person's agent, if no person acts.
    """
    agent = transaction.get(Agent, agent_id, kind)
    if agent.is_person and not transaction.is_person:
        text = f"agent {agent_id} stands for a person, and no tool acts for people"
        raise OrchestrationError("INVALID_STATE", text, "Name the id that agent_register has given you.")
    return agent


def check_online(agent: Agent) -> None:
    """Refuse the heartbeats and claims of an agent that is offline.

    Raises:
        OrchestrationError: INVALID_STATE; it names the tasks that the agent has lost.
    """
    if agent.status == "offline":
        lost: Sequence[str] = agent.lost_task_ids or []
        text = f"; it was not heard of in time and has lost: {some(lost)}" if lost else ""
        raise OrchestrationError("INVALID_STATE", f"agent {agent.id} is offline{text}", REVIVE)


# Every call that names an agent, or that comes over the connection of its claim, renews its leases.


def renew_leases(transaction: PlanTransaction, agent: Agent) -> None:
    """Renew the leases of an agent that calls; an offline agent has none."""
    if agent.status != "offline":
        leases.renew_all(transaction.stored, agent.id, transaction.lease)
        transaction.change(Agent, agent.id, last_heartbeat=transaction.now)


def renew_leases_of(transaction: PlanTransaction, agent_ids: Sequence[str]) -> None:
    """Renew the leases of several agents."""
    for agent_id in agent_ids:
        renew_leases(transaction, transaction.get(Agent, agent_id))


def renew_leases_of_holder(transaction: PlanTransaction, task: Task) -> None:
    """Renew the leases of the agent that has claimed a task over the connection of this call."""
    agent_id = _bound_agent_id(transaction, task)
    if agent_id is not None:
        renew_leases(transaction, transaction.get(Agent, agent_id))


def note_call(transaction: PlanTransaction, agent_id: str) -> None:
    """Note in a call that only reads that an agent lives. Its leases are renewed afterwards if a part of them is used.

    Raises:
        OrchestrationError: AGENT_NOT_FOUND.
    """
    transaction.get(Agent, agent_id)
    held = leases.of_holder(transaction.stored, agent_id)
    if any(lease.expires_at - transaction.now < 0.9 * transaction.lease for lease in held):
        transaction.heard_agent_ids.append(agent_id)


def note_call_of_holder(transaction: PlanTransaction, task: Task) -> None:
    """Note the same of the agent that has claimed a task over the connection of this call."""
    agent_id = _bound_agent_id(transaction, task)
    if agent_id is not None:
        note_call(transaction, agent_id)


def _bound_agent_id(transaction: PlanTransaction, task: Task) -> str | None:
    fence = transaction.bindings.fence(task.id)
    return task.assigned_agent_id if fence is not None and fence == task.fence else None


def checked_folder(workspace_path: str | None) -> str | None:
    """Return the folder of an agent, normalized.

    Raises:
        OrchestrationError: INVALID_INPUT; it is relative.
    """
    return None if workspace_path is None else normalized(workspace_path, "workspace_path")


def event(agent: Agent) -> Mapped:
    """Return what the feed shows of an agent."""
    names = ("id", "name", "runtime", "role", "status", "current_task_id", "last_heartbeat")
    return {name: getattr(agent, name) for name in names}
